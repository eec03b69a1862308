"""The HTML form: hostile text stays text, nothing is loaded, ten thousand claims stay small."""

from __future__ import annotations

import base64
import hashlib
import html.parser
import json
import re
import shlex
import time

import pytest
import report_fixture as fixture

from claimscore.jobs import report, report_html


class Page(html.parser.HTMLParser):
    """Elements, attributes and text of a page as a browser would see them."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict]] = []
        self.inside: list[str] = []
        self.blocks: dict[str, list[str]] = {"script": [], "style": []}
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self.inside.append(tag)

    def handle_endtag(self, tag):
        while self.inside and self.inside.pop() != tag:
            pass

    def handle_data(self, data):
        if self.inside and self.inside[-1] in self.blocks:
            self.blocks[self.inside[-1]].append(data)


def rendered(night) -> str:
    """The page of a night."""
    return report_html.render(report.collect(night))


def test_hostile_text_makes_no_element():
    """A page of hostile text has the elements and attributes of a page of plain text, and not one more."""
    plain = Page(rendered(fixture.hostile_night("plain words")))
    hostile = Page(rendered(fixture.hostile_night()))

    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [set(attributes) for _, attributes in hostile.elements] == [set(a) for _, a in plain.elements]


def test_hostile_text_is_shown_as_it_is():
    """Templates are not run, controls and turns of direction are shown by name."""
    page = rendered(fixture.hostile_night())

    assert "{{ 7*7 }}" in page
    assert not re.search("[\x00-\x08\x0b-\x1f\u202a-\u202e\u2066-\u2069]", page)
    assert "⟨U+001B⟩[31m⟨U+202E⟩evil" in page


def test_the_policy_allows_the_two_static_blocks_alone():
    """Hashes of style and script in the policy equal those of the blocks; no unsafe word, no source."""
    page = Page(rendered(fixture.hostile_night()))
    (policy,) = [a["content"] for tag, a in page.elements if a.get("http-equiv") == "Content-Security-Policy"]
    blocks = [page.blocks["style"][0], page.blocks["script"][1]]
    hashes = [base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in blocks]

    assert policy == (
        f"default-src 'none'; style-src 'sha256-{hashes[0]}'; script-src 'sha256-{hashes[1]}'; "
        "base-uri 'none'; form-action 'none'"
    )


def test_style_and_script_do_not_depend_on_the_data():
    """What the hashes allow is the same on every night."""
    pages = [Page(rendered(night)) for night in (fixture.hostile_night(), fixture.large_night(10))]

    assert pages[0].blocks["style"] == pages[1].blocks["style"]
    assert pages[0].blocks["script"][1] == pages[1].blocks["script"][1]


def test_nothing_is_loaded_and_nothing_runs_inline():
    """No source, no address but anchors, no handler, no inline style."""
    page = Page(rendered(fixture.large_night(100)))

    assert [a for _, a in page.elements if {"src", "style", "srcset", "action", "data"} & set(a)] == []
    assert [a for _, a in page.elements if any(name.startswith("on") for name in a)] == []
    assert {a["href"][0] for _, a in page.elements if "href" in a} == {"#"}


def test_the_data_block_is_json_without_marks():
    """The claims read back; no character that could end the block."""
    page = Page(rendered(fixture.hostile_night()))
    block = page.blocks["script"][0]
    data = json.loads(block)

    assert not set("<>&") & set(block)
    assert data["rows"][0][data["columns"].index("claim")].startswith("</script><script>")


def test_every_link_leads_somewhere():
    """Anchors within the page exist, each id once."""
    page = Page(rendered(fixture.large_night(100)))
    ids = [a["id"] for _, a in page.elements if "id" in a]

    assert len(ids) == len(set(ids))
    assert {a["href"][1:] for tag, a in page.elements if tag == "a"} <= set(ids)


def test_a_name_is_copied_from_the_page_as_it_was_written():
    """No joiner, no blank of no width."""
    rows = [fixture.answer(f"r{k}", bad=True, prompt_version="card-prompt@3") for k in range(3)]
    page = rendered(fixture.night(rows, before={"2026-11-27": rows}))

    assert page.count("<bdi>card-prompt@3</bdi>") > 0
    assert not re.search("[\u200b\u2060\ufeff]|&#(8203|8288|65279);|&NoBreak;", page)


def test_the_command_for_an_answer_can_be_pasted():
    """Output, series and id, quoted for a shell: beside each answer, and with a name to fill in for any other."""
    rows = [fixture.answer(name, bad=True) for name in ("r1; rm -rf ~", "-x", "y" * 200)]
    page = rendered(fixture.night(rows))
    commands = [shlex.split(html.unescape(c)) for c in re.findall("<code>(.*?)</code>", page)]

    start = ["claimscore", "show", "--out", "/data/claimscore out", "--series", "stub-12345678"]
    assert commands == [[*start, "--", "-x"], [*start, "r1; rm -rf ~"], [*start, "REQUEST_ID"]]


def test_each_chart_says_in_words_what_it_shows():
    """A picture without words is nothing to who cannot see it."""
    page = Page(rendered(fixture.large_night(100)))
    named = [a["aria-label"] for tag, a in page.elements if tag == "svg" and a.get("role") == "img"]

    title = "Hallucination rate by prompt version, 2026-11-28 to 2026-11-28. "
    assert named[0] == title + "; ".join(f"{letter}: 100.0% on 2026-11-28" for letter in "ABC")
    assert len(named) == 4


@pytest.mark.parametrize("night", [fixture.night([]), fixture.night([fixture.answer("r", bad=None)])])
def test_a_night_without_a_judged_claim_has_a_page(night):
    """It says stop, and that nothing was flagged."""
    page = rendered(night)

    assert '<li class="stop">' in page
    assert "No claim was flagged." in page


def test_ten_thousand_flagged_claims_stay_small():
    """Under 15 MB, made within 20 s of CPU time, and the cap is told where more are flagged."""
    night = fixture.large_night(10_400)
    begin = time.process_time()
    page = rendered(night)
    took = time.process_time() - begin

    assert len(page.encode()) < 15_000_000
    assert took < 20
    assert "10,400 flagged claims; the 10,000 of the worst answers are listed here" in page
