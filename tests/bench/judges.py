"""A thousand questions to a judge whose server takes 50 ms, 50 at once, against the same over plain sockets."""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys

__all__ = ["judge_calls"]

QUESTIONS, WIDTH, SECONDS, ROUNDS = 1000, 50, 0.05, 5
SERVER = """
import asyncio, json, sys
BODY = json.dumps({"model": "m", "choices": [{"message": {"content": "yes"}, "finish_reason": "stop"}]}).encode()
HEAD = f"HTTP/1.1 200 OK\\r\\ncontent-type: application/json\\r\\ncontent-length: {len(BODY)}\\r\\n\\r\\n".encode()
async def serve(reader, writer):
    try:
        while head := await reader.readuntil(b"\\r\\n\\r\\n"):
            size = next(int(line[15:]) for line in head.lower().split(b"\\r\\n") if line.startswith(b"content-length:"))
            await reader.readexactly(size)
            await asyncio.sleep(float(sys.argv[1]))
            writer.write(HEAD + BODY)
    except (asyncio.IncompleteReadError, ConnectionError):
        writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0, backlog=1000)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()
asyncio.run(main())
"""
MEASURE = """
import json, resource, sys, time
from concurrent.futures import ThreadPoolExecutor
def measured(ask):
    def cpu():
        used = resource.getrusage(resource.RUSAGE_SELF)
        return used.ru_utime + used.ru_stime
    with ThreadPoolExecutor(WIDTH) as pool:
        list(pool.map(ask, range(-WIDTH, 0)))
        begun, used = time.perf_counter(), cpu()
        list(pool.map(ask, range(QUESTIONS)))
        print(json.dumps([(time.perf_counter() - begun) * 1000, (cpu() - used) * 1000 / QUESTIONS]))
port, WIDTH, QUESTIONS = map(int, sys.argv[1:])
"""
OURS = (
    MEASURE
    + """
from evalwright.interfaces import Deadline, JudgeRequest
from evalwright.judging import Limits, PatientJudge
from evalwright.redaction import Redactor
from evalwright.suite.shape import JudgeShape
from evalwright_plugins.judges.openai import OpenaiConfig, OpenaiJudge
config = OpenaiConfig(base_url=f"http://127.0.0.1:{port}", model="m", api_key_env=None)
shape = JudgeShape(max_in_flight=WIDTH, provider_max_in_flight=WIDTH)
inner = OpenaiJudge(config, None)
judge = PatientJudge(inner, "j", shape, limits=Limits(), cache=None, redactor=Redactor())
def ask(number):
    request = JudgeRequest(messages=[{"role": "user", "content": f"{number}: is it right?"}])
    assert judge.ask(request, Deadline.after(60)).text == "yes"
measured(ask)
inner.close(Deadline.after(10))
"""
)
PLAIN = (
    MEASURE
    + """
import socket, threading
local = threading.local()
def ask(number):
    if not hasattr(local, "socket"):
        local.socket = socket.create_connection(("127.0.0.1", port))
    body = json.dumps({"messages": [{"role": "user", "content": f"{number}: is it right?"}]}).encode()
    local.socket.sendall(f"POST / HTTP/1.1\\r\\ncontent-length: {len(body)}\\r\\n\\r\\n".encode() + body)
    data = local.socket.recv(65536)
    assert json.loads(data.partition(b"\\r\\n\\r\\n")[2])["choices"]
measured(ask)
"""
)


def judge_calls() -> dict[str, dict[str, float]]:
    """Return the wall time (ms) of all questions against the ideal, and the CPU (ms) of one against plain sockets."""
    server = subprocess.Popen([sys.executable, "-I", "-c", SERVER, str(SECONDS)], stdout=subprocess.PIPE)
    assert server.stdout
    try:
        port = server.stdout.readline().decode().strip()
        pairs = [(_measured(OURS, port), _measured(PLAIN, port)) for _ in range(ROUNDS)]
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    ideal = QUESTIONS * SECONDS / WIDTH * 1000
    wall = statistics.median(ours[0] for ours, _ in pairs)
    cpu, floor = (statistics.median(pair[side][1] for pair in pairs) for side in (0, 1))
    return {
        "wall": {"ours": wall, "floor": ideal, "ratio": wall / ideal},
        "cpu per call": {"ours": cpu, "floor": floor, "ratio": cpu / floor},
    }


def _measured(program: str, port: str) -> list[float]:
    words = [sys.executable, "-c", program, port, str(WIDTH), str(QUESTIONS)]
    done = subprocess.run(words, capture_output=True, check=True, env=dict(os.environ), timeout=120)
    found: list[float] = json.loads(done.stdout)
    return found
