"""A thousand questions to a judge whose server takes 50 ms, 50 at once, against the same over plain sockets."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator

from tests.bench.bench import Bench
from tests.bench.lines import FLOOR, OURS, Line, Target
from tests.bench.measure import environment, figure, in_turns

__all__ = ["judge_calls"]

WIDTH, SECONDS = 50, 0.05
ASYNC = "httpx async"
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
OURS_PROGRAM = (
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


HTTPX = """
import asyncio, httpx, json, resource, sys, time
port, WIDTH, QUESTIONS = map(int, sys.argv[1:])
def cpu():
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime
async def main():
    gate = asyncio.Semaphore(WIDTH)
    async with httpx.AsyncClient(limits=httpx.Limits(max_connections=WIDTH)) as client:
        async def ask(number):
            async with gate:
                body = {"messages": [{"role": "user", "content": f"{number}: is it right?"}]}
                assert (await client.post(f"http://127.0.0.1:{port}/", json=body)).json()["choices"]
        await asyncio.gather(*map(ask, range(-WIDTH, 0)))
        begun, used = time.perf_counter(), cpu()
        await asyncio.gather(*map(ask, range(QUESTIONS)))
        print(json.dumps([(time.perf_counter() - begun) * 1000, (cpu() - used) * 1000 / QUESTIONS]))
asyncio.run(main())
"""


def judge_calls(bench: Bench) -> Iterator[Line]:
    """Measure the wall time of all questions against the ideal, and the CPU of one against plain sockets."""
    questions = bench.count(1000, 200)
    server = subprocess.Popen([sys.executable, "-I", "-c", SERVER, str(SECONDS)], stdout=subprocess.PIPE)
    assert server.stdout
    try:
        port = server.stdout.readline().decode().strip()
        sides: dict[str, Callable[[], dict[str, float]]] = {
            OURS: lambda: _measured(OURS_PROGRAM, port, questions),
            FLOOR: lambda: _measured(PLAIN, port, questions),
            ASYNC: lambda: {"cpu": _measured(HTTPX, port, questions // 5)["cpu"]},
        }
        measured = in_turns(sides, bench.rounds)
    finally:
        server.kill()
        server.wait()
        server.stdout.close()
    wall = figure(measured, "wall") | {"ideal": questions * SECONDS / WIDTH * 1000}
    label = f"wall of {questions:,} questions, {WIDTH} at once"
    yield Line(label=label, unit="ms", sides=wall, targets=[Target(1.5, "ideal")])
    yield Line(label="CPU of a question", unit="ms", sides=figure(measured, "cpu"), targets=[Target(28, FLOOR)])


def _measured(program: str, port: str, questions: int) -> dict[str, float]:
    words = [sys.executable, "-c", program, port, str(WIDTH), str(questions)]
    done = subprocess.run(words, capture_output=True, check=True, env=environment(), timeout=120)
    wall, cpu = json.loads(done.stdout)
    return {"wall": wall, "cpu": cpu}
