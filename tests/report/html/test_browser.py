"""The page in a real headless browser: no console errors, values by pointer and keyboard, lines that hide, both widths."""

import shutil
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from selenium import webdriver
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from dpmf_cli.datasets import Folders
from dpmf_cli.report.html.page import overview_page

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
pytestmark = pytest.mark.skipif(
    not (CHROMIUM and DRIVER), reason="no browser here: apt-get install chromium chromium-driver"
)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
CURVES = "#ml100k_bounded .chart"


@pytest.fixture(scope="module")
def browser(results: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[webdriver.Chrome]:
    """A browser with the page of all results open."""
    assert CHROMIUM, "CI needs chromium: apt-get install chromium"
    assert DRIVER, "CI needs chromedriver: apt-get install chromium-driver"
    folder = tmp_path_factory.mktemp("browser")
    page = folder / "report.html"
    html = overview_page(Folders(folder, folder, results=results))
    page.write_text(html, encoding="utf-8")
    options = webdriver.ChromeOptions()
    options.binary_location = CHROMIUM
    for flag in (*FLAGS, f"--user-data-dir={folder / 'profile'}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(DRIVER))
    try:
        driver.set_window_size(1200, 900)
        driver.get(page.as_uri())
        yield driver
    finally:
        driver.quit()


def emulate(browser: webdriver.Chrome, *, width: int, scheme: str = "light", media: str = "") -> None:
    size = {"width": width, "height": 800, "deviceScaleFactor": 1, "mobile": width < 600}
    browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    feature = {"name": "prefers-color-scheme", "value": scheme}
    browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"media": media, "features": [feature]})


def evaluate(browser: webdriver.Chrome, script: str) -> Any:
    return browser.execute_script(f"return {script}")


def test_no_errors_and_nothing_is_asked_of_the_network(browser: webdriver.Chrome) -> None:
    assert browser.get_log("browser") == []
    asked = [
        entry["message"]
        for entry in browser.get_log("performance")
        if "Network.requestWillBeSent" in entry["message"] and '"url":"http' in entry["message"]
    ]
    assert asked == []


def test_values_by_pointer_and_by_keyboard(browser: webdriver.Chrome) -> None:
    emulate(browser, width=1200)
    picture = browser.find_element(By.CSS_SELECTOR, f"{CURVES} .picture")
    readout = browser.find_element(By.CSS_SELECTOR, f"{CURVES} .readout")
    assert not readout.is_displayed()
    ActionChains(browser).move_to_element_with_offset(picture, 40 - picture.size["width"] // 2, 0).perform()
    assert readout.text.startswith("total ε, claimed and provable = 0.5")
    mean = evaluate(browser, f"document.querySelector('{CURVES} table.values td').firstChild.textContent")
    assert f"●PGE {mean}" in readout.text.splitlines()
    evaluate(browser, f"document.querySelector('{CURVES} .picture').focus()")
    ActionChains(browser).send_keys(Keys.END).perform()
    assert readout.text.startswith("total ε, claimed and provable = 30")
    ActionChains(browser).send_keys(Keys.ARROW_LEFT).perform()
    assert readout.text.startswith("total ε, claimed and provable = 8")
    ActionChains(browser).send_keys(Keys.ESCAPE).perform()
    assert not readout.is_displayed()


def test_a_line_is_hidden_and_shown_by_keyboard(browser: webdriver.Chrome) -> None:
    emulate(browser, width=1200)
    box = browser.find_element(By.CSS_SELECTOR, f"{CURVES} .legend input")
    line = f"getComputedStyle(document.querySelector('{CURVES} svg g[data-line=\"0\"]')).display"
    assert evaluate(browser, line) != "none"
    box.send_keys(Keys.SPACE)
    assert evaluate(browser, line) == "none"
    assert evaluate(browser, line.replace('"0"', '"1"')) != "none"
    box.send_keys(Keys.SPACE)
    assert evaluate(browser, line) != "none"


@pytest.mark.parametrize("width", [390, 1200])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_fits_and_can_be_read_at_every_width_in_both_schemes(
    browser: webdriver.Chrome, width: int, scheme: str
) -> None:
    emulate(browser, width=width, scheme=scheme)
    assert evaluate(browser, "document.documentElement.scrollWidth <= window.innerWidth")
    # WCAG 2: text 4.5, and lines and markers 3, against what is behind them.
    contrast = """(() => {
      const parse = (colour) => colour.match(/[\\d.]+/g).slice(0, 3).map(Number);
      const light = (colour) => parse(colour).map((c) => c / 255)
        .map((c) => c <= 0.03928 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
        .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
      const behind = (element) => {
        for (let at = element; at; at = at.parentElement) {
          const colour = getComputedStyle(at).backgroundColor;
          if (!/rgba\\(.*, 0\\)/.test(colour)) return colour;
        }
        return 'rgb(255, 255, 255)';
      };
      const faint = [];
      const check = (element, least) => {
        const [a, b] = [light(getComputedStyle(element).color), light(behind(element))].sort((x, y) => x - y);
        if ((b + 0.05) / (a + 0.05) < least) faint.push(element.outerHTML.slice(0, 120));
      };
      document.querySelectorAll('p, td, th, li, a, summary, .notes, .soft, dt').forEach((e) => check(e, 4.5));
      document.querySelectorAll('svg g.label text').forEach((e) => check(e, 4.5));
      document.querySelectorAll('svg g[data-line]').forEach((e) => check(e, 3));
      return faint.slice(0, 5);
    })()"""
    assert evaluate(browser, contrast) == []


@pytest.mark.parametrize(("width", "shown"), [(390, True), (1200, False)])
def test_baselines_are_named_at_their_lines_where_labels_are_cut_off(
    browser: webdriver.Chrome, width: int, shown: bool
) -> None:
    emulate(browser, width=width)
    names = browser.find_elements(By.CSS_SELECTOR, f"{CURVES} text.level-name")
    assert [name.get_attribute("textContent") for name in names] == ["GA", "IA", "GE"]
    assert {name.is_displayed() for name in names} == {shown}
    heights = sorted(float(name.get_attribute("y") or 0) for name in names)
    assert min(second - first for first, second in pairwise(heights)) >= 20


def test_on_paper_all_is_unfolded_and_the_controls_are_gone(browser: webdriver.Chrome) -> None:
    emulate(browser, width=1200, media="print")
    assert evaluate(browser, "getComputedStyle(document.querySelector('nav')).display") == "none"
    evaluate(browser, "window.dispatchEvent(new Event('beforeprint'))")
    assert evaluate(browser, "document.querySelectorAll('details:not(.config):not([open])').length") == 0
    evaluate(browser, "window.dispatchEvent(new Event('afterprint'))")
    assert evaluate(browser, "document.querySelectorAll('details[open]').length") == 0


def test_without_scripts_it_says_the_same(browser: webdriver.Chrome) -> None:
    emulate(browser, width=1200)
    browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": True})
    try:
        browser.refresh()
        chart = browser.find_element(By.CSS_SELECTOR, CURVES)
        assert chart.find_element(By.TAG_NAME, "svg").is_displayed()
        chart.find_element(By.TAG_NAME, "summary").click()
        assert "0.5" in chart.find_element(By.CSS_SELECTOR, "table.values").text
        assert not browser.find_element(By.CSS_SELECTOR, ".script-only").is_displayed()
    finally:
        browser.execute_cdp_cmd("Emulation.setScriptExecutionDisabled", {"value": False})
