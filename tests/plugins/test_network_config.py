"""What a suite may say about the network, what it is told when it is wrong, and what commands are told."""

from __future__ import annotations

import ipaddress
from typing import Any

import pytest
from pydantic import ValidationError

from evalwright_plugins.network import Injection, NetworkConfig, injection_problems, proxy_environment
from evalwright_plugins.network._hosts import AllowList, split_authority

INJECT = {"host": "api.example.com", "header": "Authorization", "env": "API_KEY", "format": "Bearer {value}"}
ODD_ADDRESSES = (
    "0x7f.1",
    "127.1",
    "127.0.1",
    "2130706433",
    "0x7f000001",
    "0177.0.0.1",
    "127.0.0.01",
    "0x7F.0.0.1",
    "1.2.3.4.5",
    "127.1.",
)
"""Spellings that the system's resolver takes for addresses, or that look like one."""
LISTED = {"network": "allowlist", "allow": ["api.example.com"]}


@pytest.mark.parametrize(
    ("entry", "host", "port", "admitted"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "api.example.com", 80, True),
        ("api.example.com", "api.example.com", 22, False),
        ("api.example.com", "www.api.example.com", 443, False),
        ("api.example.com", "api.example.com.evil.org", 443, False),
        ("API.Example.com.", "api.example.com", 443, True),
        ("api.example.com:8443", "api.example.com", 8443, True),
        ("api.example.com:8443", "api.example.com", 443, False),
        ("*.example.com", "a.example.com", 443, True),
        ("*.example.com", "a.b.example.com", 443, True),
        ("*.example.com", "example.com", 443, False),
        ("*.example.com", "aexample.com", 443, False),
        ("*.example.com:8443", "a.example.com", 8443, True),
        ("*.example.com:8443", "a.example.com", 443, False),
        ("127.0.0.1:8000", "127.0.0.1", 8000, True),
        ("127.0.0.1:8000", "127.0.0.1", 80, False),
        ("[::ffff:127.0.0.1]", "127.0.0.1", 80, True),
        ("[::FFFF:7f00:1]:8000", "127.0.0.1", 8000, True),
        ("127.0.0.1.", "127.0.0.1", 80, True),
        ("[0:0:0:0:0:0:0:1]", "::1", 80, True),
        ("1.example.com", "1.example.com", 443, True),
        ("0xfe.example.com", "0xfe.example.com", 443, True),
        ("[::1]:8000", "::1", 8000, True),
        ("[0:0:0:0:0:0:0:1]", "::1", 443, True),
    ],
)
def test_entry_admits_what_it_says(entry: str, host: str, port: int, admitted: bool) -> None:
    assert AllowList([entry]).admits(host, port) is admitted


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("127.8.8.8", False),
        ("0.0.0.0", False),
        ("10.1.2.3", False),
        ("172.16.0.1", False),
        ("192.168.1.1", False),
        ("100.100.100.200", False),
        ("169.254.169.254", False),
        ("168.63.129.16", False),
        ("224.0.0.1", False),
        ("255.255.255.255", False),
        ("240.0.0.1", False),
        ("::", False),
        ("::1", False),
        ("fe80::1", False),
        ("fd00:ec2::254", False),
        ("ff02::1", False),
        ("::ffff:10.0.0.1", False),
        ("::ffff:93.184.216.34", True),
        ("64:ff9b::a00:1", False),
        ("64:ff9b::5db8:d822", True),
        ("2002:7f00:1::", False),
        ("2001:0:7f00:1::", False),
    ],
)
def test_listed_name_may_stand_for_public_addresses_alone(address: str, public: bool) -> None:
    assert AllowList(["api.example.com"]).admits_address(ipaddress.ip_address(address), 443) is public


def test_localhost_stands_for_loopback_and_for_nothing_else() -> None:
    allow = AllowList(["localhost"])

    assert allow.admits_address(ipaddress.ip_address("127.0.0.1"), 80)
    assert allow.admits_address(ipaddress.ip_address("::1"), 80)
    assert not allow.admits_address(ipaddress.ip_address("127.0.0.1"), 8000)
    assert not allow.admits_address(ipaddress.ip_address("10.0.0.1"), 80)


@pytest.mark.parametrize(
    ("entry", "why"),
    [
        ("https://api.example.com/v1", "write the host alone: 'api.example.com'"),
        ("api.example.com/v1", "write the host alone: 'api.example.com'"),
        ("*", 'network: "host"'),
        ("*:443", "wildcard"),
        ("api.*.com", "wildcard"),
        ("*example.com", "wildcard"),
        ("*.*.com", "wildcard"),
        ("*.127.0.0.1", "no subdomains"),
        ("", "not a host"),
        (" api.example.com", "not a host"),
        ("api..example.com", "not a host"),
        ("user@api.example.com", "not a host"),
        ("api.example.com:", "not a host"),
        ("api.example.com:0", "1 to 65535"),
        ("api.example.com:65536", "1 to 65535"),
        ("::1", "not a host"),
        *((odd, "four decimal numbers") for odd in ODD_ADDRESSES),
        ("*.1", "four decimal numbers"),
        ("user@127.0.0.1", "not a host"),
        ("user:password@api.example.com", "not a host"),
        ("127.0.0.1..", "not a host"),
        ("api.example.com..", "not a host"),
        ("[::1%lo]", "not a host"),
        ("127.0.0.1%2e", "not a host"),
        ("\u0661\u0662\u0667.0.0.1", "not a host"),
        ("[api.example.com]", "not a host"),
        ("ex\u00e4mple.com", "not a host"),
        ("a\nb", "not a host"),
    ],
)
def test_entry_that_is_no_host_is_explained(entry: str, why: str) -> None:
    with pytest.raises(ValidationError) as raised:
        NetworkConfig(network="allowlist", allow=[entry])

    assert why in str(raised.value)


@pytest.mark.parametrize(
    ("table", "why"),
    [
        ({"network": "open"}, "'none', 'host' or 'allowlist'"),
        ({"network": "none", "allow": ["api.example.com"]}, 'need network: "allowlist"'),
        ({"network": "host", "inject": [INJECT]}, 'need network: "allowlist"'),
        ({"network": "allowlist"}, "needs hosts in allow"),
        ({**LISTED, "allows": []}, "Extra inputs"),
        ({**LISTED, "allow": "api.example.com"}, "list"),
        ({**LISTED, "inject": [{**INJECT, "host": "www.example.com"}]}, "allow does not list"),
        ({**LISTED, "inject": [{**INJECT, "host": "api.example.com:8443"}]}, "for port 8443"),
        ({**LISTED, "inject": [{**INJECT, "host": "*.example.com"}]}, "name one host"),
        ({**LISTED, "inject": [{**INJECT, "header": "Host"}]}, "not a header that can be set"),
        ({**LISTED, "inject": [{**INJECT, "header": "Transfer-Encoding"}]}, "not a header that can be set"),
        ({**LISTED, "inject": [{**INJECT, "header": "A: b"}]}, "not a header that can be set"),
        ({**LISTED, "inject": [{**INJECT, "env": "sk-12345"}]}, "not the name of an environment variable"),
        ({**LISTED, "inject": [{**INJECT, "format": "Bearer"}]}, "must have {value} once"),
        ({**LISTED, "inject": [{**INJECT, "format": "a\r\nB: {value}"}]}, "must have {value} once"),
        ({**LISTED, "inject": [INJECT, {**INJECT, "header": "authorization"}]}, "twice"),
        ({**LISTED, "inject": [INJECT, {**INJECT, "header": "X-Key", "tls": False}]}, "both with tls and without"),
    ],
)
def test_table_that_makes_no_sense_is_explained(table: dict[str, Any], why: str) -> None:
    with pytest.raises(ValidationError) as raised:
        NetworkConfig.model_validate(table)

    assert why in str(raised.value)


def test_nothing_is_reached_unless_the_suite_says_so() -> None:
    assert NetworkConfig().network == "none"


def test_missing_variable_is_a_problem_that_names_it_and_its_place() -> None:
    config = NetworkConfig.model_validate({**LISTED, "inject": [{**INJECT, "env": "GIVEN", "header": "X-Given"}, INJECT]})

    problems = injection_problems(config, {"GIVEN": "value"}, place="sandbox")

    assert [problem.message for problem in problems] == [
        "sandbox.inject[1] (host api.example.com): the environment variable API_KEY is not set"
    ]
    assert problems[0].fatal
    assert "export API_KEY" in problems[0].hint
    assert injection_problems(config, {"GIVEN": "value", "API_KEY": "value"}, place="sandbox") == []


def test_credential_written_into_the_suite_is_not_repeated_by_the_message() -> None:
    with pytest.raises(ValidationError) as raised:
        Injection.model_validate({**INJECT, "env": "sk-12345"})

    assert "sk-12345" not in raised.value.errors()[0]["msg"]


def test_commands_are_told_of_the_proxy_and_speak_to_their_own_loopback_directly() -> None:
    variables = proxy_environment(3128, ["api.example.com"])

    assert {
        variables[name] for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy")
    } == {"http://127.0.0.1:3128"}
    assert variables["NO_PROXY"] == variables["no_proxy"] == "localhost,127.0.0.1,::1"


def test_loopback_of_the_host_that_is_listed_goes_through_the_proxy() -> None:
    assert proxy_environment(3128, ["127.0.0.1:8000", "localhost:8000", "[::1]:8000"])["NO_PROXY"] == ""


@pytest.mark.parametrize("authority", [*ODD_ADDRESSES, "user@127.0.0.1", "127.0.0.1%2e"])
def test_what_a_trial_asks_for_is_spelled_as_an_entry_is(authority: str) -> None:
    with pytest.raises(ValueError, match=r"four decimal numbers|not a host"):
        split_authority(f"{authority}:80")


def test_wrapped_address_is_the_one_that_it_wraps() -> None:
    assert split_authority("[::ffff:10.0.0.1]:80") == ("10.0.0.1", 80)
    assert AllowList(["10.0.0.1"]).admits_address(ipaddress.ip_address("::ffff:10.0.0.1"), 80)
    assert not AllowList(["10.0.0.2"]).admits_address(ipaddress.ip_address("::ffff:10.0.0.1"), 80)
