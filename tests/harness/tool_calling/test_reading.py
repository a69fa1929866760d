import pytest
from hypothesis import given, strategies as st

from tests.harness.tool_calling.readers import (
    SEARCH,
    TOOLS,
    calls_of,
    joined,
    read,
    schema,
    text_of,
)
from tinyagents.harness.text import dump_json
from tinyagents.harness.tool_calling import (
    MAX_CALLS,
    PFormatDialect,
    TextCall,
    ToolDialect,
    XmlDialect,
)

XML = XmlDialect()
DIALECTS: list[ToolDialect] = [XML, PFormatDialect()]
MOSS = TextCall(name="search", arguments={"query": "moss"})
NOW = TextCall(name="now")
JSON = '{"name": "search", "arguments": {"query": "moss"}}'

ONE_CALL = [
    f"<tool_call>{JSON}</tool_call>",
    f"<tool_call>\n{JSON}\n</tool_call>\n",
    f"<toolcall>{JSON}</toolcall>",
    f"<tool-call>{JSON}</tool-call>",
    f"<invoke>{JSON}</invoke>",
    f"<TOOL_CALL>{JSON}</Tool_Call>",
    f'<tool_call id="1">{JSON}</tool_call>',
    '<tool_call name="search">{"query": "moss"}</tool_call>',
    f"<tool_call>{JSON}",
    f"<tool_call>{JSON}</tool_call></tool_call>",
    f"<tool_call>{JSON}</tool_calls>",
    f"<tool_calls>\n<tool_call>{JSON}</tool_call>\n</tool_calls>",
    f"<tool_call>\n```json\n{JSON}\n```\n</tool_call>",
    f"<|tool_call|>{JSON}<|tool_call|>",
    f"<|tool_call>{JSON}<tool_call|>",
    f"<tool_call|>{JSON}</tool_call|>",
    f"<|tool_call|>{JSON}<|/tool_call|>",
    '<|tool_call>call:search{query:<|"|>moss<|"|>}<tool_call|>',
    '<tool_call>search{query:<|"|>moss<|"|>}</tool_call>',
    '<tool_call>{"name": "search", "parameters": {"query": "moss"}}</tool_call>',
    '<tool_call>{"name": "search", "args": {"query": "moss"}}</tool_call>',
    '<tool_call>{"name": "search", "params": {"query": "moss"}}</tool_call>',
    '<tool_call>{"name": "search", "input": {"query": "moss"}}</tool_call>',
    '<tool_call>{"name": "search", "arguments": "{\\"query\\": \\"moss\\"}"}</tool_call>',
    '<tool_call>{"function": {"name": "search", "arguments": {"query": "moss"}}}</tool_call>',
    f"<tool_call>[{JSON}]</tool_call>",
    '<tool_call>{name: "search", arguments: {query: "moss"}}</tool_call>',
    '<tool_call>{"name": "search", "arguments": {"query": "moss"}</tool_call>',
    '<invoke name="search"><parameter name="query">moss</parameter></invoke>',
    '<function_calls>\n<invoke name="search">\n<parameter name="query">moss</parameter>\n</invoke>\n'
    "</function_calls>",
    "<tool_call>\n<function=search>\n<parameter=query>\nmoss\n</parameter>\n</function>\n</tool_call>",
    "<tool_call>search\n<arg_key>query</arg_key>\n<arg_value>moss</arg_value>\n</tool_call>",
    "<\uff5ctool\u2581calls\u2581begin\uff5c><\uff5ctool\u2581call\u2581begin\uff5c>function"
    '<\uff5ctool\u2581sep\uff5c>search\n```json\n{"query": "moss"}\n```'
    "<\uff5ctool\u2581call\u2581end\uff5c><\uff5ctool\u2581calls\u2581end\uff5c>",
    "<\uff5ctool\u2581call\u2581begin\uff5c>search<\uff5ctool\u2581sep\uff5c>"
    '{"query": "moss"}<\uff5ctool\u2581call\u2581end\uff5c>',
    f"```tool_call\n{JSON}\n```",
    f"```tool\n{JSON}\n```\n",
    JSON,
    f"\n {JSON}\n",
    f"```json\n{JSON}\n```",
    f"[{JSON}]",
    f'{{"tool_calls": [{JSON}]}}',
    '{"tool_calls": [{"id": "c", "type": "function", "function": '
    '{"name": "search", "arguments": "{\\"query\\": \\"moss\\"}"}}]}',
    "search/query>moss",
]


@pytest.mark.parametrize("dialect", DIALECTS, ids=repr)
@pytest.mark.parametrize("reply", ONE_CALL)
def test_each_form_in_which_models_write_a_call_is_one_call_and_no_text(
    dialect: ToolDialect, reply: str
) -> None:
    assert read(dialect, reply) == [MOSS]


TEXT = [
    "",
    "Hello.",
    "  \n ",
    "a < b and c > d, `x`, ```python\nprint(1)\n```",
    "Use the <tool_call> tag to call a tool.",
    f"Write `<tool_call>{JSON}</tool_call>` for it.",
    "<tool_calls>[]</tool_calls>",
    f"<tool_call_id>{JSON}</tool_call_id>",
    f"<x:tool_call>{JSON}</x:tool_call>",
    "<tool_call/>",
    "<tool_call>",
    "<tool_call>nonsense</tool_call>",
    '<tool_call>{"name": "search", "argum',
    "<tool_call>[1, 2]</tool_call>",
    '<tool_call>{"name": "", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "Search", "arguments": {}}</tool_call>',
    '<tool_call>{"name": "shell", "arguments": {"command": "ls"}}</tool_call>',
    '<tool_call>{"arguments": {"query": "moss"}}</tool_call>',
    '{"name": "search"}',
    '{"name": "search", "parameters": {"query": "moss"}}',
    '{"name": "search", "arguments": {}, "why": "because"}',
    '{"name": "Paris", "arguments": {}}',
    '{"arguments": {}, "name": "Paris"}',
    '{"name": "search", "arguments": {}} is how to call it',
    f"It is {JSON}",
    f'{{"answer": {JSON}}}',
    f'[{JSON}, {{"name": "other"}}]',
    f'{{"tool_calls": [{JSON}], "content": "and more"}}',
    "[1, 2]",
    "{}",
    "https://example.com/search?query=moss",
    "bash/command>ls",
    "search/other>moss",
    "search/query>moss\nand so on",
    "search",
    "```bash\ncurl https://example.com\n```",
    "<parameter name='query'>moss</parameter>",
    '<tool_call><parameter name="query">moss</parameter></tool_call>',
]


@pytest.mark.parametrize("dialect", DIALECTS, ids=repr)
@pytest.mark.parametrize("reply", TEXT)
def test_what_is_no_call_of_an_offered_tool_is_text_to_the_letter(
    dialect: ToolDialect, reply: str
) -> None:
    assert read(dialect, reply) == ([reply] if reply else [])


def test_text_around_calls_stays_where_it_was() -> None:
    reply = f'Let me look.\n<tool_call>{JSON}</tool_call>\n<tool_call>{{"name": "now"}}</tool_call>\nDone.'
    assert read(XML, reply) == ["Let me look.\n", MOSS, NOW, "Done."]


def test_two_objects_between_one_pair_of_tags_are_two_calls() -> None:
    assert read(XML, f'<tool_call>{JSON}\n{{"name": "now"}}</tool_call>') == [MOSS, NOW]


def test_calls_without_closing_tags_are_told_apart_by_the_next_opening() -> None:
    assert read(XML, f'<tool_call>{JSON}<tool_call>{{"name": "now"}}') == [MOSS, NOW]
    assert read(XML, f'<|tool_call>{JSON}<|tool_call>{{"name": "now"}}') == [MOSS, NOW]


def test_a_labelled_fence_right_behind_a_call_is_another_call() -> None:
    reply = f'<tool_call>{JSON}</tool_call>```tool_call\n{{"name": "now"}}\n```'
    assert read(XML, reply) == [MOSS, NOW]
    assert read(XML, reply, *range(len(reply))) == [MOSS, NOW]


def test_a_closing_tag_inside_an_argument_belongs_to_the_argument() -> None:
    value = "say </tool_call> and <tool_call>"
    reply = f"<tool_call>{dump_json({'name': 'search', 'arguments': {'query': value}})}</tool_call>"
    assert read(XML, reply) == [TextCall(name="search", arguments={"query": value})]


def test_a_call_whose_arguments_are_broken_is_an_invalid_call_and_the_next_one_is_whole() -> None:
    reply = (
        '<tool_call>{"name": "search", "arguments": {"query": "mo}}</tool_call>\n'
        '<tool_call>{"name": "now"}</tool_call>'
    )
    broken, whole = calls_of(read(XML, reply))
    assert (broken.name, broken.arguments) == ("search", {})
    assert broken.invalid is not None
    assert broken.invalid.raw == '{"query": "mo}}'
    assert "not JSON" in broken.invalid.reason
    assert whole == NOW


@pytest.mark.parametrize("arguments", ["[1]", "7", "true", '"x"'])
def test_arguments_that_are_no_object_make_an_invalid_call(arguments: str) -> None:
    reply = f'<tool_call>{{"name": "search", "arguments": {arguments}}}</tool_call>'
    [call] = calls_of(read(XML, reply))
    assert call.arguments == {}
    assert call.invalid is not None


@pytest.mark.parametrize(
    "arguments", ["", ', "arguments": null', ', "arguments": ""', ', "arguments": {}']
)
def test_no_arguments_are_no_arguments(arguments: str) -> None:
    assert read(XML, f'<tool_call>{{"name": "now"{arguments}}}</tool_call>') == [NOW]


def test_parameters_as_elements_are_read_as_their_schema_says() -> None:
    tool = schema(
        "set",
        {
            "text": {"type": "string"},
            "count": {"type": "integer"},
            "on": {"type": "boolean"},
            "items": {"type": "array"},
            "any": {},
        },
    )
    given = {"text": "5", "count": "5", "on": "yes", "items": "[1]", "any": "{}"}
    inside = "".join(f'<parameter name="{name}">{text}</parameter>' for name, text in given.items())
    [call] = calls_of(read(XML, f'<invoke name="set">{inside}</invoke>', tools=[tool]))
    assert call.arguments == {"text": "5", "count": 5, "on": True, "items": [1], "any": {}}


def test_lines_of_one_tool_are_one_call_until_a_parameter_comes_again() -> None:
    assert read(XML, "search/query>a\nsearch/limit>3\nsearch/query>b") == [
        TextCall(name="search", arguments={"query": "a", "limit": 3}),
        TextCall(name="search", arguments={"query": "b"}),
    ]


def test_names_with_any_characters_are_called_exactly() -> None:
    tool = schema("files.read/v2")
    call = TextCall(name="files.read/v2")
    assert read(XML, '<tool_call>{"name": "files.read/v2"}</tool_call>', tools=[tool]) == [call]
    assert read(PFormatDialect(), "<tool_call>files.read/v2[]</tool_call>", tools=[tool]) == [call]


def test_a_call_of_a_tool_that_was_not_offered_is_noticed() -> None:
    reader = XML.reader(TOOLS)
    reader.feed('<tool_call>{"name": "shell", "arguments": {}}</tool_call>')
    reader.finish()
    [notice] = reader.notices
    assert "`shell`" in notice


def test_more_calls_than_a_reply_may_make_stay_text() -> None:
    one = '<tool_call>{"name": "now"}</tool_call>'
    pieces = read(XML, one * (MAX_CALLS + 3))
    assert len(calls_of(pieces)) == MAX_CALLS
    assert text_of(pieces) == one * 3


def test_text_is_held_back_only_while_it_can_be_part_of_a_call() -> None:
    reader = XML.reader(TOOLS)
    assert reader.feed("a ") == ["a "]
    assert reader.feed("<b> 1 <") == ["<b> 1 "]
    assert reader.feed("tool") == []
    assert reader.feed("box>") == ["<toolbox>"]
    assert reader.feed("<tool_call>") == []
    assert reader.feed("x") == ["<tool_call>x"]


@pytest.mark.parametrize(
    "head", ['{"city":', '{"name": "Paris"', "[1,", "{}", '```json\n{"a"', "So"]
)
def test_an_answer_is_held_back_only_until_it_cannot_be_a_call(head: str) -> None:
    assert XML.reader(TOOLS).feed(head) == [head]


FRAGMENTS = st.sampled_from(
    [
        *(
            "<tool_call>",
            "</tool_call>",
            "<tool_call",
            "<",
            ">",
            "`",
            "```",
            "\n",
            " ",
            "[",
            "]",
            "|",
        ),
        *(
            "{",
            "}",
            '"',
            "\\",
            ":",
            ",",
            "call:",
            "search",
            "now",
            "search[",
            "now[]",
            "a",
            "\u2581",
        ),
        *(
            '{"name": "now"}',
            '{"name": "search", "arguments": {"query": "',
            '"}}',
            '"name"',
            "/query>",
        ),
        *("<|tool_call|>", "<tool_call|>", '<invoke name="search">', "</invoke>", "<tool_calls>"),
        *('<parameter name="query">', "</parameter>", "<arg_key>query</arg_key>", "<arg_value>"),
        *(
            "```tool_call\n",
            "```json\n",
            "\n```",
            "</function_calls>",
            "<function_calls>",
            "function",
        ),
        "<\uff5ctool\u2581call\u2581begin\uff5c>",
        "<\uff5ctool\u2581sep\uff5c>",
        "<\uff5ctool\u2581call\u2581end\uff5c>",
        f"<tool_call>{JSON}</tool_call>",
    ]
)
REPLIES = st.one_of(
    st.lists(FRAGMENTS, max_size=12).map("".join),
    st.sampled_from(ONE_CALL + TEXT),
    st.tuples(st.sampled_from(ONE_CALL), FRAGMENTS, st.sampled_from(ONE_CALL)).map("".join),
    st.text(max_size=20),
)


@given(reply=REPLIES, data=st.data(), dialect=st.sampled_from(DIALECTS))
def test_however_a_reply_is_cut_the_same_text_and_calls_are_read(
    reply: str, data: st.DataObject, dialect: ToolDialect
) -> None:
    cuts = data.draw(st.lists(st.integers(0, len(reply)), max_size=8))
    whole = read(dialect, reply)
    assert read(dialect, reply, *cuts) == whole
    assert read(dialect, reply, *range(len(reply))) == whole


@given(reply=REPLIES, dialect=st.sampled_from(DIALECTS))
def test_a_reply_without_calls_is_shown_to_the_letter(reply: str, dialect: ToolDialect) -> None:
    pieces = read(dialect, reply)
    if not calls_of(pieces):
        assert text_of(pieces) == reply
    assert all(call.name in ("search", "now") for call in calls_of(pieces))


@pytest.mark.parametrize(
    ("start", "unit"),
    [
        *(
            ("", "<"),
            ("", "`"),
            ("", "<tool_call>"),
            ("", "<tool_call>{"),
            ("", "<tool_call>search["),
        ),
        *(("", '<tool_call>{"</tool_call>'), ("", "<tool_calls> "), ("", "{"), ("", " ")),
        *(
            ("<tool_call>", " "),
            ("<tool_call>{", "[1],"),
            ('<tool_call>{"', '\\"'),
            ("<tool_call>", "{"),
        ),
        *(
            ("<tool_call>search[", "\\"),
            ("<tool_call>search ", "<parameter=query>"),
            ("text", "\\"),
        ),
        *(('{"name":"search","arguments":{"', "\\"), ('{"name":"search","arguments":', "[")),
    ],
)
def test_a_megabyte_that_is_made_to_be_slow_is_read_in_one_pass(start: str, unit: str) -> None:
    # With work that grows with the square of the size, this would not end.
    reply = start + unit * (1_000_000 // len(unit))
    reader = PFormatDialect().reader([SEARCH])
    cuts = range(0, len(reply), 1000)
    pieces = [piece for at in cuts for piece in reader.feed(reply[at : at + 1000])]
    pieces += reader.finish()
    assert joined(pieces) == [reply]
