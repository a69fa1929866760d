"""What a page of HTML says."""

import pytest

from tinyagents.harness.html_text import html_to_text, looks_like_html


@pytest.mark.parametrize(
    ("html", "text"),
    [
        ("<p>One<p>Two", "One\n\nTwo"),
        ("<h2>A  title</h2>text", "## A title\n\ntext"),
        ("<ul><li>a<li>b <i>c</i>, d</ul>", "- a\n- b c, d"),
        ("<table><tr><th>x<th>y<tr><td>1<td>2</table>", "x | y\n1 | 2"),
        ("<pre>  a\n    b</pre>", "a\n    b"),
        ("a<br>b<hr>c", "a\nb\n---\nc"),
        ('<a href="/x?a=1&amp;b=2">the  link</a>.', "[the link](/x?a=1&b=2)."),
        ("<a href=/a>one <a href=/b>two</a>", "[one](/a) [two](/b)"),
        ('<a href="javascript:x()">no</a> <a href="#top">up</a> <a>none</a>', "no up none"),
        ('<a href="/x"></a>', ""),
        ('<img alt="a  cat" src=x><img src=y>', "[image: a cat]"),
        ("a &lt;b&gt; &amp;amp; &eacute;&#233;&#xe9;", "a <b> &amp; ééé"),
        ("1 < 2 <3 a<<b", "1 < 2 <3 a<"),
        ("<p title='a>b'>x", "x"),
        ("<p don't>x</p> it's", "x\n\nit's"),
        ("a<script>if (a<b) '</p>'</script >b<style>p{}</style>c", "abc"),
        ("a<SCRIPT>x</Script\n>b", "ab"),
        ("a<!-- <p>no --> b<!-->c<!doctype x>d<?php x ?>e", "a bcde"),
        ("a<svg><text>no</text></svg>b <svg/>c", "a [svg] b [svg] c"),
        ("a<template>no</template><noscript>no</noscript>", "a"),
        (f"see data:image/png;base64,{'A' * 64}== there", "see [data: image/png] there"),
        ("&#xD800;&#0;", "\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_markup_becomes_text(html: str, text: str) -> None:
    assert html_to_text(html).text == text


def test_the_title_is_apart() -> None:
    page = html_to_text("<head><title>\n A &amp; B </title></head><title>no</title><p>x")
    assert (page.title, page.text) == ("A & B", "x")


@pytest.mark.parametrize(
    "open_end", ["<script>", "<!--", "<a ", '<a b="', "<svg>", "</p", "<!", "<title>"]
)
def test_what_is_left_open_takes_the_rest_as_in_a_browser(open_end: str) -> None:
    assert html_to_text(f"a{open_end} and more").text == "a"


@pytest.mark.parametrize(
    "piece",
    [
        "<", "<a ", "</a", "<!--", '<a b="', "<a b='' ", "<script>", "</script", "<svg></svg>", "&#9",
        "<pre>", "<a href=x>", "<a href=x>y", "<li>", "data:", "data:a;", " ", "<title></title>", "<td>",
    ],
)  # fmt: skip
def test_no_page_takes_more_than_its_length(piece: str) -> None:
    # Of what grows with the square of the length this would take hours.
    html_to_text(piece * (100_000 // len(piece)))
    html_to_text("&#" + "9" * 100_000)


@pytest.mark.parametrize(
    "text",
    [
        "<!DOCTYPE html><p>",
        "\ufeff\n <html>",
        "<div>x",
        "<!-- c -->\n<body>",
        "<p class='a'>",
        "<script>x",
    ],
)
def test_a_page_looks_like_one(text: str) -> None:
    assert looks_like_html(text)


@pytest.mark.parametrize(
    "text",
    ["", "a < b > c", "List<String> x", "<T>(x: T) => x", '<?xml version="1.0"?><a/>', "<svg></svg>", "text <p>",
     "<Component />", "# a\n<div>", "[1, 2]"],
)  # fmt: skip
def test_code_and_comparisons_look_like_none(text: str) -> None:
    assert not looks_like_html(text)
