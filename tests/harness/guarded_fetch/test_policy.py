"""Which addresses are refused before anything is sent."""

import socket

import pytest

from tests.harness.guarded_fetch.loopback import Names
from tinyagents.harness.errors import ConfigurationError, FetchError, FetchRefusedError
from tinyagents.harness.guarded_fetch import GuardedFetch, HostPolicy, resolve_host


async def refused(url: str, fetch: GuardedFetch | None = None) -> str:
    with pytest.raises(FetchRefusedError) as caught:
        await (fetch or GuardedFetch(resolve=Names())).get(url)
    assert "hunter2" not in str(caught.value)
    assert "hunter2" not in caught.value.url
    return caught.value.reason


SPECIAL = [
    *("0.0.0.0", "0.1.2.3", "10.0.0.1", "100.64.0.1", "100.100.100.200", "127.0.0.1"),
    *("127.255.255.254", "168.63.129.16", "169.254.169.254", "172.16.0.1", "172.31.255.255"),
    *("192.0.0.192", "192.0.2.1", "192.88.99.1", "192.168.1.1", "198.18.0.1", "198.51.100.1"),
    *("203.0.113.1", "224.0.0.1", "239.255.255.255", "240.0.0.1", "255.255.255.255"),
    *("::", "::1", "::ffff:127.0.0.1", "::ffff:8.8.8.8", "::7f00:1", "64:ff9b::7f00:1"),
    *("64:ff9b:1::a00:1", "2002:7f00:1::", "2001:0:4136:e378:8000:63bf:3fff:fdd2", "2001:db8::1"),
    *("2001:20::1", "3fff::1", "fc00::1", "fd00:ec2::254", "fe80::1", "fec0::1", "ff02::1"),
    *("100::1", "4000::1", "5f00::1", "::ffff:0:127.0.0.1"),
]


@pytest.mark.parametrize("address", SPECIAL)
async def test_an_address_beyond_the_public_internet_is_refused(address: str) -> None:
    host = f"[{address}]" if ":" in address else address
    assert await refused(f"http://{host}/") == "address"


@pytest.mark.parametrize("address", SPECIAL)
async def test_a_name_of_such_an_address_is_refused(address: str) -> None:
    fetch = GuardedFetch(resolve=Names(inside=[[address]]))
    assert await refused("http://inside.test/", fetch) == "address"


async def test_one_bad_address_of_several_refuses_them_all() -> None:
    fetch = GuardedFetch(resolve=Names(mixed=[["8.8.8.8", "10.0.0.1"]]))
    assert await refused("http://mixed.test/", fetch) == "address"


@pytest.mark.parametrize(
    "answer", ["fe80::1%eth0", "2606:4700::1%1", "127.1", "2130706433", "nonsense", ""]
)
async def test_a_look_up_that_gives_no_plain_address_is_refused(answer: str) -> None:
    fetch = GuardedFetch(resolve=Names(odd=[[answer]]))
    assert await refused("http://odd.test/", fetch) == "address"


@pytest.mark.parametrize(
    "host",
    [
        *("2130706433", "0x7f000001", "0x7f.0.0.1", "0177.0.0.1", "017700000001", "127.1"),
        *("127.0.1", "127.0.0.1.", "0x7f.1", "00.0.0.0", "1.2.3.4.5", "127.000.000.001", "0X7F.1"),
        *("127\u30020\u30020\u30021", "\uff11\uff12\uff17.0.0.1", "\u2460\u2461\u2466.0.0.1"),
        *("[::1%25lo]", "[::1%lo]", "[fe80::1%25eth0]", "[::127.1]", "[::ffff:0x7f.1]"),
        *("exa%6dple.com", "a%2eb", "a%00b", "a b", "a\\b", "a\tb", "-a.com", "a..b", ".", ""),
        *("x" * 64 + ".com", "a." * 127 + "com", "example.0x1", "example.1", "a\u00adb.com"),
    ],
)
async def test_a_host_that_could_be_read_in_two_ways_is_refused(host: str) -> None:
    assert await refused(f"http://{host}/") in ("url", "address")


@pytest.mark.parametrize(
    "url",
    [
        "http://user@example.com/",
        "http://user:hunter2@example.com/",
        "http://example.com\\@10.0.0.1/",
        "http://:hunter2@example.com/",
        "http://8.8.8.8:80@10.0.0.1/",
    ],
)
async def test_an_address_with_a_user_is_refused_and_not_repeated(url: str) -> None:
    assert await refused(url) in ("credentials", "url", "address")


@pytest.mark.parametrize(
    "url",
    [
        "file:///etc/passwd",
        "ftp://example.com/",
        "gopher://example.com/",
        "javascript:alert(1)",
        "//example.com/",
        "example.com",
        "",
        "unix:///var/run/docker.sock",
    ],
)
async def test_only_http_is_spoken(url: str) -> None:
    assert await refused(url) in ("scheme", "url")


async def test_an_address_of_another_scheme_is_shown_as_it_was_given() -> None:
    for url in ("ftp://example.com/", "example.com"):
        with pytest.raises(FetchRefusedError, match=rf"`{url}` was not fetched"):
            await GuardedFetch().get(url)


@pytest.mark.parametrize(
    "url", ["http://example.com/\n", "http://example.com/\r\nx: y", "http://a/" + "x" * 10_000]
)
async def test_what_no_address_holds_is_refused(url: str) -> None:
    assert await refused(url) == "url"


async def test_other_ports_and_schemes_are_refused() -> None:
    assert await refused("http://example.com:22/") == "port"
    anywhere = GuardedFetch(hosts=HostPolicy(ports=None), resolve=Names())
    assert await refused("http://example.com:0/", anywhere) == "port"
    assert await refused("http://example.com:65536/", anywhere) == "port"
    https = GuardedFetch(hosts=HostPolicy(schemes=["https"]), resolve=Names())
    assert await refused("http://example.com/", https) == "scheme"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("http://example.com/", True),
        ("http://EXAMPLE.com./", True),
        ("http://a.example.com/", False),
        ("http://a.files.test/", True),
        ("http://a.b.files.test/", True),
        ("http://files.test/", False),
        ("http://badfiles.test/", False),
        ("http://example.com.evil.test/", False),
        ("http://8.8.8.8/", False),
    ],
)
async def test_only_the_hosts_that_are_named_are_reached(url: str, allowed: bool) -> None:
    names = Names()
    fetch = GuardedFetch(hosts=HostPolicy(hosts=["Example.com", "*.files.test"]), resolve=names)
    with pytest.raises(FetchError) as caught:
        await fetch.get(url)
    assert caught.value.reason == ("connection" if allowed else "host")
    assert bool(names.asked) == allowed


@pytest.mark.parametrize(
    "wrong",
    [
        {"hosts": "example.com"},
        {"hosts": ["http://example.com"]},
        {"hosts": ["*"]},
        {"hosts": ["a.*.com"]},
        {"schemes": ["ftp"]},
        {"networks": ["10.0.0.1/8"]},
        {"networks": ["here"]},
    ],
)
def test_a_policy_that_cannot_be_one_says_so(wrong: dict[str, list[str]]) -> None:
    with pytest.raises(ConfigurationError):
        HostPolicy(**wrong)  # type: ignore[arg-type]


async def test_the_system_knows_this_machine() -> None:
    assert set(await resolve_host("localhost", 80)) <= {"127.0.0.1", "::1"}
    with pytest.raises(socket.gaierror):
        await resolve_host("nothing.localhost.", 80)
