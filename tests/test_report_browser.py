"""The HTML report in a real headless browser; skipped where no Chromium with its driver is installed.

The browser resolves no host name, so that a page that asks the network for anything fails.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterator

import pytest
import report_fixture as fixture

from claimscore.jobs import report, report_html

BROWSER = next(
    (found for name in ("chromium", "chromium-browser", "google-chrome") if (found := shutil.which(name))),
    None,
)
DRIVER = shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (BROWSER and DRIVER),
    reason="no browser: install chromium and chromedriver (Debian: chromium, chromium-driver)",
)
webdriver = pytest.importorskip("selenium.webdriver", reason="no selenium: install the dev extra")
waiting = pytest.importorskip("selenium.webdriver.support.wait")

LOADED = "return location.href !== 'about:blank' && performance.getEntriesByType('navigation')[0].domComplete"
CONTRAST = """
const light = ([r, g, b]) => [r, g, b].map(c => c / 255)
  .map(c => c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
  .reduce((sum, c, k) => sum + c * [0.2126, 0.7152, 0.0722][k], 0);
const parse = text => text.match(/[\\d.]+/g).map(Number);
const behind = e => { const c = parse(getComputedStyle(e).backgroundColor);
  return c.length === 4 && c[3] === 0 ? (e.parentElement ? behind(e.parentElement) : [255, 255, 255]) : c; };
return [...document.querySelectorAll(arguments[0])].map(e => {
  const pair = [light(parse(getComputedStyle(e).color)), light(behind(e))].sort((a, b) => b - a);
  return (pair[0] + 0.05) / (pair[1] + 0.05); });
"""


@pytest.fixture(scope="module")
def browser(tmp_path_factory) -> Iterator:
    """One headless browser with an empty profile."""
    options = webdriver.ChromeOptions()
    options.binary_location = BROWSER
    profile = tmp_path_factory.mktemp("profile")
    for flag in (
        *("--headless", "--no-sandbox", "--disable-gpu", "--disable-background-networking", "--no-first-run"),
        *("--window-size=1280,2000", f"--user-data-dir={profile}", "--host-resolver-rules=MAP * ~NOTFOUND"),
    ):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(DRIVER))
    yield driver
    driver.quit()


@pytest.fixture(scope="module")
def pages(tmp_path_factory) -> dict[str, str]:
    """Addresses of pages: 100 flagged claims, 10,000 of them, hostile text, a token of a million letters."""
    nights = {
        "some": fixture.large_night(100),
        "many": fixture.large_night(10_000),
        "hostile": fixture.hostile_night(),
        "long": fixture.hostile_night("x" * 1_000_000),
    }
    folder = tmp_path_factory.mktemp("pages")
    for name, night in nights.items():
        (folder / f"{name}.html").write_text(report_html.render(report.collect(night)), encoding="utf-8")
    return {name: (folder / f"{name}.html").as_uri() for name in nights}


def visit(browser, address: str) -> None:
    """Load a page anew, even where only the part behind # differs."""
    browser.get("about:blank")
    browser.get_log("browser")
    browser.get(address)
    wait = waiting.WebDriverWait(browser, 120)  # get may come back before the page is whole
    wait.until(lambda driver: driver.execute_script(LOADED))


def claims(browser) -> list[str]:
    """The claims listed, as they are read."""
    return [e.text for e in browser.find_elements("css selector", "#rows .claim")]


def test_search_narrows_the_claims(browser, pages):
    """Typing a number leaves the two claims of that answer, says how many, and writes it into the address."""
    visit(browser, pages["some"])
    browser.find_element("name", "q").send_keys("request-000007")

    assert [claim[:28] for claim in claims(browser)] == [
        "Claim 0 of answer 7 says tha",
        "Claim 1 of answer 7 says tha",
    ]
    assert browser.find_element("id", "count").text == "2 of 100 claims match"
    assert browser.current_url.endswith("#q=request-000007")


def test_a_choice_filters(browser, pages):
    """Choosing a verdict leaves its claims alone."""
    visit(browser, pages["some"])
    browser.find_element("css selector", "select[name=verdict]").send_keys("contradicted")

    assert browser.find_element("id", "count").text == "50 of 100 claims match"
    badges = browser.find_elements("css selector", "#rows .badge:first-child")
    assert {badge.text for badge in badges} == {"contradicted"}


def test_an_address_holds_the_filter(browser, pages):
    """A link with a filter shows what its sender saw."""
    visit(browser, pages["some"] + "#q=request-000007&verdict=%3Dunsupported")

    assert [claim[:20] for claim in claims(browser)] == ["Claim 0 of answer 7 "]


def test_pages_turn_by_keyboard(browser, pages):
    """Space on the button shows the next claims, numbered on."""
    visit(browser, pages["some"])
    browser.find_element("id", "on").send_keys(" ")

    assert browser.find_element("id", "page").text == "page 2 of 4"
    assert claims(browser)[0].startswith("Claim 1 of answer 12 ")
    assert browser.find_element("id", "rows").get_property("start") == 26


def test_a_folded_answer_opens_by_keyboard(browser, pages):
    """Enter on a summary shows the claims behind it."""
    visit(browser, pages["some"])
    article = browser.find_elements("css selector", "article")[5]
    before = article.find_element("css selector", ".claims").is_displayed()
    article.find_element("css selector", "summary").send_keys("\ue007")

    assert (before, article.find_element("css selector", ".claims").is_displayed()) == (False, True)


def test_a_link_to_an_answer_opens_it(browser, pages):
    """The anchor is the request id, and the answer behind it is unfolded."""
    visit(browser, pages["some"] + "#a-request-000020")

    assert browser.find_element("css selector", "[id='a-request-000020'] .claims").is_displayed()


def test_ten_thousand_claims_are_seen_within_two_seconds(browser, pages):
    """From the start of loading to a page with its first claims listed; and a search answers within one.

    The best of a few tries: on a machine that others use the browser has to wait for a core.
    """
    times = []
    for _ in range(5):
        visit(browser, pages["many"])
        loaded = browser.execute_script(LOADED)
        first = len(claims(browser))
        took = browser.execute_script(
            "const q = document.querySelector('[name=q]'), begin = performance.now(); q.value = 'answer 4999 says';"
            "q.dispatchEvent(new Event('input', {bubbles: true})); return performance.now() - begin"
        )
        assert (first, len(claims(browser))) == (25, 2)
        times.append((loaded, took))
        if 0 < loaded < 2_000 and took < 1_000:
            break

    assert 0 < min(loaded for loaded, _ in times) < 2_000
    assert min(took for _, took in times) < 1_000


def test_hostile_text_runs_nothing(browser, pages):
    """No script of the log ran, no picture was made, and the browser had nothing to refuse."""
    visit(browser, pages["hostile"])
    for summary in browser.find_elements("css selector", "#rows summary"):
        summary.click()

    assert browser.execute_script("return window.pwned") is None
    assert browser.find_elements("css selector", "img") == []
    assert fixture.HOSTILE.split("\x1b")[0] in claims(browser)[0]
    assert browser.get_log("browser") == []


def test_nothing_sticks_out_of_a_phone(browser, pages):
    """At 360 pixels no page scrolls sideways, not even with a token of a million letters."""
    browser.execute_cdp_cmd(
        "Emulation.setDeviceMetricsOverride",
        {"width": 360, "height": 800, "deviceScaleFactor": 1, "mobile": True},
    )
    try:
        widths = {}
        for name in ("some", "hostile", "long"):
            visit(browser, pages[name])
            widths[name] = browser.execute_script("return document.documentElement.scrollWidth")
    finally:
        browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    assert widths == {"some": 360, "hostile": 360, "long": 360}


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_is_readable_in_both_schemes(browser, pages, scheme):
    """Every kind of text has a contrast of 4.5 or more against what is behind it (WCAG 2.2 AA)."""
    feature = {"features": [{"name": "prefers-color-scheme", "value": scheme}]}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", feature)
    try:
        visit(browser, pages["some"])
        kinds = "p, h1, h2, h3, a, th, td, li, mark, mark sup, .badge, .quiet, .change, label, blockquote, cite, button"
        ratios = browser.execute_script(CONTRAST, f":is({kinds}):not(:disabled)")
        background = browser.execute_script("return getComputedStyle(document.body).backgroundColor")
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})

    assert background == {"light": "rgb(255, 255, 255)", "dark": "rgb(20, 23, 27)"}[scheme]
    assert len(ratios) > 300
    assert min(ratios) >= 4.5


def test_print_leaves_out_the_controls(browser, pages):
    """On paper: the answers, those unfolded whole, and neither the filter nor its list nor a button."""
    visit(browser, pages["some"])
    browser.find_element("id", "unfold").click()
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": "print"})
    try:
        shown = {
            name: browser.find_element("css selector", name).is_displayed()
            for name in ("#filter", "#rows", "#unfold", "nav", "#paper", "article:nth-of-type(40) .claims")
        }
    finally:
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": ""})

    assert [name for name, is_shown in shown.items() if is_shown] == [
        "#paper",
        "article:nth-of-type(40) .claims",
    ]


def test_without_scripts_the_answers_are_there(browser, pages):
    """A mail program that runs no script shows the rates and the worst answers, and says what is missing."""
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        visit(browser, pages["some"])
        shown = browser.find_element("css selector", "main").text
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})

    assert "Hallucination rate\n100.0%" in shown
    assert "Claim 0 of answer 0 says" in shown
    assert "Where scripts run" in shown
