"""One request and its response, carried over unbuffered; a request's body goes up while the response comes down."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence

from evalwright_plugins.network._http import CHUNKED, UNTIL_CLOSE, Framing, Malformed, Request, Response, body, read_response

__all__ = ["Broken", "exchange"]

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]
Passed = Callable[[int, int], None]
Header = Sequence[tuple[str, str]]

CONTINUE = 100


class Broken(Exception):
    """The exchange failed when a part of the response had been sent already: nothing can be said to the client any more."""


async def exchange(
    near: Streams, far: Streams, request: Request, head: tuple[str, Header], *, limit: int, passed: Passed
) -> bool:
    """Send a request up, with ``head`` (path and header) for its own, and the response down.

    Returns whether the connection to the client can carry another request. ``passed`` is told the bytes that went up and
    down. Raises ``Malformed``, ``OSError`` or ``EOFError`` before anything was sent down, ``Broken`` after.
    """
    path, header = head
    _write_head(far[1], f"{request.method} {path} HTTP/1.1", [*header, ("Connection", "close")], lambda n: passed(n, 0))
    upload = asyncio.create_task(_upload(near[0], far[1], request.framing, lambda n: passed(n, 0)))
    try:
        try:
            response = await _final_response(near[1], far[0], request, limit)
        except (Malformed, OSError, EOFError) as failure:
            if upload.done() and isinstance(wrong := upload.exception(), Malformed):
                raise wrong from failure
            if isinstance(failure, Malformed):
                raise Malformed(f"the server's answer cannot be read: {failure}", 502) from failure
            raise
        try:
            persistent = await _send_down(near[1], far[0], request, response, lambda n: passed(0, n))
        except (Malformed, OSError, EOFError) as failure:
            raise Broken(str(failure)) from failure
        return persistent and upload.done() and upload.exception() is None
    finally:
        upload.cancel()
        await asyncio.gather(upload, return_exceptions=True)


async def _upload(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, framing: Framing, passed: Callable[[int], None]
) -> None:
    """Send a request's body. A server that stops reading may still answer; a client that fails ends the exchange."""
    pieces = body(reader, framing)
    while True:
        try:
            piece = await anext(pieces, b"")
        except (Malformed, OSError, EOFError):
            writer.transport.abort()
            raise
        await _write_piece(writer, piece, framing == CHUNKED, passed)
        if not piece:
            return


async def _final_response(writer: asyncio.StreamWriter, reader: asyncio.StreamReader, request: Request, limit: int) -> Response:
    """Return the final response's head; interim ones are passed on to clients that know them."""
    while True:
        response = await read_response(reader, limit, request.method)
        if response.status >= 200:
            return response
        if response.status == 101:
            raise Malformed("it switched protocols unasked", 502)
        if request.minor == 1 and (response.status != CONTINUE or "100-continue" in request.fields.words("expect")):
            _write_head(writer, _status_line(response), response.fields.end_to_end(), lambda _: None)
            await writer.drain()


async def _send_down(
    writer: asyncio.StreamWriter,
    reader: asyncio.StreamReader,
    request: Request,
    response: Response,
    passed: Callable[[int], None],
) -> bool:
    """Send the response, framed so that the connection can stay open wherever the client's version allows it."""
    chunked = response.framing in (CHUNKED, UNTIL_CLOSE) and request.minor == 1
    persistent = request.persistent and (chunked or isinstance(response.framing, int))
    framing = [("Transfer-Encoding", "chunked")] if chunked else [("Content-Length", v) for v in response.lengths]
    header = [*response.fields.end_to_end(), *framing, ("Connection", "keep-alive" if persistent else "close")]
    _write_head(writer, _status_line(response), header, passed)
    await writer.drain()
    async for piece in body(reader, response.framing):
        await _write_piece(writer, piece, chunked, passed)
    if chunked:
        await _write_piece(writer, b"", chunked, passed)
    return persistent


def _status_line(response: Response) -> str:
    return f"HTTP/1.1 {response.status} {response.reason}"


def _write_head(writer: asyncio.StreamWriter, first: str, header: Header, passed: Callable[[int], None]) -> None:
    head = "".join([f"{first}\r\n", *(f"{name}: {value}\r\n" for name, value in header), "\r\n"]).encode("latin-1")
    writer.write(head)
    passed(len(head))


async def _write_piece(writer: asyncio.StreamWriter, piece: bytes, chunked: bool, passed: Callable[[int], None]) -> None:
    """Send a piece of a body at once; in chunked form an empty one is the end."""
    data = b"%x\r\n%b\r\n" % (len(piece), piece) if chunked else piece
    writer.write(data)
    passed(len(data))
    await writer.drain()
