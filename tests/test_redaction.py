"""Redaction of text and streams: whatever the chunks and wherever the cut, no part of a secret survives."""

from __future__ import annotations

import random

import pytest

from evalwright.redaction import MARK, WINDOW, Redactor, credential_values

SECRET = "sk-live-ABCDEFGHIJKLMNOPQR"


def captured(redactor: Redactor, data: bytes, max_bytes: int, chunk: int) -> bytes:
    sink = redactor.output(max_bytes)
    for start in range(0, len(data), chunk):
        sink.feed(data[start : start + chunk])
    return sink.finish().head


def longest_part(text: str, secret: str) -> int:
    """Return the length of the longest piece of the secret that the text holds."""
    return max(n for n in range(len(secret) + 1) if any(secret[i : i + n] in text for i in range(len(secret) - n + 1)))


@pytest.mark.parametrize("chunk", [1, 7, 25, 26, 27, 4096])
@pytest.mark.parametrize("before", range(970, 1003, 4))
def test_secret_across_chunks_and_the_cut_leaves_no_part_of_itself(chunk: int, before: int) -> None:
    data = b"." * before + SECRET.encode() + b"." * 500

    head = captured(Redactor([SECRET]), data, 1000, chunk)

    assert longest_part(head.decode(), SECRET) <= 1
    assert head == (b"." * before + MARK.encode() + b"." * 500)[:1000]


@pytest.mark.parametrize("shift", [-27, -26, -13, -1, 0, 1])
@pytest.mark.parametrize("window", [1, 2, 3])
def test_secret_at_the_border_of_the_held_back_window_is_found(shift: int, window: int) -> None:
    before = WINDOW * window + shift
    data = b"." * before + SECRET.encode() + b"." * (WINDOW * 3)

    head = captured(Redactor([SECRET]), data, 10 * WINDOW, 65536)

    assert head == data.replace(SECRET.encode(), MARK.encode())


def test_any_stream_in_any_chunks_is_redacted_like_the_whole_text() -> None:
    source = random.Random(7)
    redactor = Redactor([SECRET, "short-one", "hunter2hunter2"], [r"tok_[a-z0-9]+"])
    for _ in range(30):
        pieces = [
            source.choice(
                [SECRET, "short-one", "hunter2hunter2", "tok_" + "x9" * source.randint(1, 40), "." * 50, "é\n", "sk-live"]
            )
            for _ in range(source.choice([20, 4000]))
        ]
        text = " ".join(pieces)
        data, chunk = text.encode(), source.choice([13, 997, 65536])

        assert captured(redactor, data, 10_000_000, chunk).decode() == redactor.text(text)


def test_tail_of_a_truncated_stream_holds_no_secret() -> None:
    sink = Redactor([SECRET]).output(10)
    for _ in range(5000):
        sink.feed(f"line {SECRET}\n".encode())

    done = sink.finish()

    assert done.truncated
    assert b"sk-live" not in done.head + done.tail
    assert MARK.encode() in done.tail
    assert done.total_bytes == 5000 * (len(SECRET) + 6)


def test_match_longer_than_the_window_is_redacted_to_its_end() -> None:
    data = b"a tok_" + b"x" * (WINDOW * 5) + b" z"

    assert captured(Redactor([], [r"tok_[a-z]+"]), data, 10 * WINDOW, 5000) == f"a {MARK} z".encode()


def test_tail_inside_a_match_longer_than_the_window_shows_none_of_it() -> None:
    sink = Redactor([], [r"tok_[a-z]+"]).output(100)
    sink.feed(b"." * 200 + b"tok_")
    for _ in range(80):
        sink.feed(b"x" * 5000)
    sink.feed(b" end")

    assert b"xxxx" not in sink.finish().tail


def test_literal_secret_longer_than_the_window_leaves_no_part_of_itself() -> None:
    literal = "".join(random.Random(1).choices("abcdefgh", k=WINDOW + 20_000))
    data = b"." * 50_000 + literal.encode() + b"." * (WINDOW * 3)

    head = captured(Redactor([literal]), data, 10 * WINDOW, 1000)

    assert literal[:100].encode() not in head
    assert literal[-100:].encode() not in head


def test_secret_between_bytes_that_are_not_utf8_is_found() -> None:
    data = b"\xff\xfe" + SECRET.encode() + b"\xc3"

    assert b"sk-live" not in captured(Redactor([SECRET]), data, 1000, 3)
    assert Redactor([SECRET]).bytes(data) == b"\xff\xfe" + MARK.encode() + b"\xc3"


def test_secret_that_is_not_utf8_itself_is_found() -> None:
    secret = b"caf\xe9-caf\xe9-caf\xe9"
    redactor = Redactor([secret.decode("utf-8", "surrogateescape")])

    assert secret not in redactor.bytes(b"x" + secret)
    assert b"caf" not in captured(redactor, b"x" + secret + b"y", 1000, 4)


def test_overlapping_and_nested_secrets_are_redacted_whole() -> None:
    redactor = Redactor(["password-abc", "abc-password-abc-x"])

    assert "abc" not in redactor.text("1 abc-password-abc-x 2 password-abc 3")
    assert redactor.text("password-abcpassword-abc") == MARK + MARK


def test_json_is_redacted_in_keys_values_and_depth_and_keeps_its_other_values() -> None:
    value = {SECRET: [1, True, None, {"a": f"x{SECRET}y"}], "n": 1.5}

    assert Redactor([SECRET]).json(value) == {MARK: [1, True, None, {"a": f"x{MARK}y"}], "n": 1.5}


def test_pattern_that_explodes_hides_the_window_instead_of_hanging() -> None:
    assert Redactor([], [r"(a|a)+$"]).text("a" * 5000 + "!") in {MARK, "a" * 5000 + "!"}


def test_pattern_that_does_not_compile_is_refused() -> None:
    with pytest.raises(ValueError, match="bad pattern"):
        Redactor([], ["("])


def test_empty_match_of_a_pattern_changes_nothing() -> None:
    assert Redactor([], ["x*"]).text("abc") == "abc"


@pytest.mark.parametrize("name", ["API_KEY", "GITHUB_TOKEN", "DB_PASSWORD", "my_secret", "AWS_SECRET_ACCESS_KEY", "PASSWD"])
def test_value_of_a_variable_named_like_a_credential_is_a_secret(name: str) -> None:
    assert credential_values({name: "longenough"}) == ("longenough",)


def test_short_guesses_stay_readable_but_named_variables_never() -> None:
    environment = {"USE_TOKEN": "true", "KEYBOARD": "qwertyuiop", "PIN": "123", "EMPTY_KEY": ""}

    assert credential_values(environment, ["PIN", "EMPTY_KEY", "ABSENT"]) == ("123",)
