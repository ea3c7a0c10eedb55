#!/usr/bin/env python3
"""Reads pages as people do who have no mouse, no screen, or a small one.

    python3 tools/pages/check.py PAGE...

A page is a file or an address, also of a live page, which changes as it is read. For each one:

- axe-core finds no violation, with everything folded and light at 1280 pixels, and with
  everything open and dark at 390 pixels;
- nothing but what scrolls by itself is wider than a window of 1280, 768 or 390 pixels;
- the Tab key goes through all that can be used, in the order of the page, to its end; what
  has the focus is marked and in sight; Enter unfolds and folds; the arrows move what scrolls;
- links within the page lead to something that exists, and there and back by the keyboard;
- in the tree that a screen reader gets, headings do not skip a level, every picture has a
  name of its own and a description, and every table has a name, and heads for its rows and
  columns. What `summary.json` says of the verdict stands in the tree, the headline first.

Pages are rendered by Chromium and driven by ChromeDriver (W3C WebDriver). Prints what was
found page by page; the exit code is 1 if something is wrong, and 2 for wrong arguments.
"""

import json
import sys
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from selenium import webdriver
from selenium.webdriver.chrome.options import Options
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.action_chains import ActionChains
from selenium.webdriver.common.keys import Keys

AXE = (Path(__file__).parent / "axe-core" / "axe.min.js").read_text()
WIDTHS = [1280, 768, 390]
HEIGHT = 900
# Seconds for a live page to get its first figures.
PATIENCE = 10
# Pages that are read at the same time.
AT_ONCE = 3

# What the Tab key should reach, in the order of the page.
CAN_BE_USED = """
return [...document.querySelectorAll(
    'a[href], button, input, select, textarea, summary, [tabindex="0"]')]
  .filter(it => !it.disabled && it.checkVisibility({contentVisibilityAuto: true}))
  // Of radio buttons that belong together, Tab reaches the one that is chosen.
  .filter(it => it.type != 'radio' || it.checked)
  .filter(it => !it.closest('details:not([open])') || it.localName == 'summary');
"""

# The focused element: its place among those, its mark and whether a part of it is in sight.
FOCUSED = """
const it = document.activeElement;
if (it == document.body || it == document.documentElement) return null;
const style = getComputedStyle(it), at = it.getBoundingClientRect();
return {
  place: arguments[0].indexOf(it),
  what: it.outerHTML.slice(0, 100),
  marked: style.outlineStyle != 'none' && parseFloat(style.outlineWidth) > 0,
  seen: at.bottom > 0 && at.top < innerHeight && at.right > 0 && at.left < innerWidth,
};
"""


class Page:
    """A page in a browser, and what is wrong with it."""

    def __init__(self, browser, address):
        self.browser = browser
        self.address = address
        self.wrong = []

    def run(self, script, *arguments):
        return self.browser.execute_script(script, *arguments)

    def check(self, is_right, text):
        if not is_right and text not in self.wrong:
            self.wrong.append(text)

    def show(self, width, theme, is_open=False):
        """Loads the page anew."""
        protocol = self.browser.execute_cdp_cmd
        size = {"width": width, "height": HEIGHT, "deviceScaleFactor": 1, "mobile": False}
        protocol("Emulation.setDeviceMetricsOverride", size)
        scheme = {"name": "prefers-color-scheme", "value": theme}
        protocol("Emulation.setEmulatedMedia", {"features": [scheme]})
        self.browser.get(self.address)
        # A live page shows itself with its first figures.
        end = time.monotonic() + PATIENCE
        while self.run("return document.querySelector('main[hidden]')"):
            if time.monotonic() > end:
                self.check(False, "the page shows no figures")
                break
            time.sleep(0.05)
        if is_open:
            self.run("document.querySelectorAll('details').forEach(it => it.open = true)")

    def press(self, key):
        ActionChains(self.browser).send_keys(key).perform()

    def audit(self, width, theme, is_open):
        """What axe-core says."""
        self.show(width, theme, is_open)
        self.run(AXE)
        found = self.browser.execute_async_script(
            "const done = arguments[arguments.length - 1];"
            "axe.run({resultTypes: ['violations']}).then(it => done(it.violations.map("
            "  rule => [rule.id, rule.help, rule.nodes.map(node => node.html)])));"
        )
        state = f"{width} px, {theme}, {'open' if is_open else 'folded'}"
        for rule, text, nodes in found:
            self.check(False, f"{state}: {rule}, {text}, {len(nodes)} times: {nodes[0][:200]}")

    def fit(self, width):
        """Nothing is cut at the right edge."""
        self.show(width, "light", is_open=True)
        over = self.run(
            "return [...document.querySelectorAll('body *')].filter(it =>"
            " it.getBoundingClientRect().right > innerWidth + 1 && !it.closest('.scroll'))"
            ".map(it => it.outerHTML.slice(0, 120))"
        )
        self.check(not over, f"{width} px: wider than the window: {over[:3]}")
        wide = self.run("return document.documentElement.scrollWidth - innerWidth")
        self.check(wide <= 0, f"{width} px: the page itself scrolls sideways by {wide} px")

    def tab(self):
        """From the start of the page to its end by Tab."""
        self.show(WIDTHS[-1], "light")
        wanted = self.run(CAN_BE_USED)
        stops = []
        while True:
            self.press(Keys.TAB)
            focused = self.run(FOCUSED, wanted)
            if focused is None:
                break
            if focused["place"] in stops:
                trap = stops[-1] == focused["place"]
                self.check(not trap, f"the Tab key does not leave {focused['what']}")
                break
            stops.append(focused["place"])
            self.check(focused["marked"], f"the focus is not marked: {focused['what']}")
            self.check(focused["seen"], f"the focus is out of sight: {focused['what']}")
        missed = [place for place in range(len(wanted)) if place not in stops]
        html = "return arguments[0].outerHTML.slice(0, 100)"
        for place in missed[:3]:
            self.check(False, f"Tab does not reach {self.run(html, wanted[place])}")
        for before, after in zip(stops, stops[1:]):
            text = f"Tab does not keep to the order of the page: from {before} to {after}"
            self.check(before < after, text)
        return len(stops)

    def fold(self):
        """Enter unfolds and folds."""
        is_open = "return arguments[0].parentElement.open"
        summaries = self.run("return [...document.querySelectorAll('summary')]"
                             ".filter(it => it.checkVisibility())")
        for summary in summaries:
            before = self.run(is_open, summary)
            for expected in (not before, before):
                self.run("arguments[0].focus()", summary)
                self.press(Keys.ENTER)
                name = summary.text
                self.check(self.run(is_open, summary) == expected, f"Enter does not fold: {name}")
        return len(summaries)

    def scroll(self):
        """The arrows move what is wider than the window."""
        self.show(WIDTHS[-1], "light", is_open=True)
        wide = self.run("return [...document.querySelectorAll('*')].filter(it =>"
                        " it.scrollWidth > it.clientWidth + 1 && it.checkVisibility() &&"
                        " ['auto', 'scroll'].includes(getComputedStyle(it).overflowX))")
        for region in wide:
            self.run("arguments[0].focus({preventScroll: true})", region)
            self.press(Keys.ARROW_RIGHT)
            moved = self.settled(region)
            what = self.run("return arguments[0].outerHTML.slice(0, 120)", region)
            self.check(moved > 0, f"the arrows do not scroll {what}")
        return len(wide)

    def settled(self, region):
        """How far it is scrolled; scrolling takes a moment."""
        end = time.monotonic() + 1
        while time.monotonic() < end:
            if moved := self.run("return arguments[0].scrollLeft", region):
                return moved
        return 0

    def links(self):
        """Links within the page, by Enter, and back by the browser."""
        self.show(WIDTHS[0], "light")
        links = self.run("return [...document.querySelectorAll('a[href^=\"#\"]')]"
                         ".filter(it => it.checkVisibility())")
        for link in links:
            target = self.run(
                "arguments[0].focus();"
                "return document.getElementById(decodeURIComponent(arguments[0].hash.slice(1)))",
                link,
            )
            href = link.get_attribute("href").partition("#")[2]
            self.check(target is not None, f"a link leads nowhere: #{href}")
            if target is None:
                continue
            self.press(Keys.ENTER)
            at = self.run("const at = arguments[0].getBoundingClientRect();"
                          "return at.top < innerHeight && at.bottom > 0", target)
            self.check(at, f"the link to #{href} does not show it")
        return len(links)

    def tree(self):
        """What a screen reader gets."""
        self.show(WIDTHS[0], "light", is_open=True)
        nodes = self.browser.execute_cdp_cmd("Accessibility.getFullAXTree", {})["nodes"]
        by_id = {node["nodeId"]: node for node in nodes}
        nodes = [node for node in nodes if not node["ignored"]]

        def value(node, key):
            return (node.get(key) or {}).get("value") or ""

        def level(node):
            return next(it["value"]["value"] for it in node["properties"] if it["name"] == "level")

        def below(node):
            for child in node.get("childIds", []):
                if child in by_id:
                    yield by_id[child]
                    yield from below(by_id[child])

        def of(role):
            return [node for node in nodes if value(node, "role") == role]

        headings = of("heading")
        levels = [level(node) for node in headings]
        self.check(levels.count(1) == 1, f"{levels.count(1)} headings of the first level")
        for before, after in zip(headings, headings[1:]):
            jump = level(after) > level(before) + 1
            self.check(not jump, f"a level is skipped before: {value(after, 'name')}")
        self.check(len(of("main")) == 1, "there is not one main part")
        drawn = {"image", "img", "graphics-document"}
        for node in nodes:
            named = value(node, "role") not in drawn or value(node, "name")
            self.check(named, "a mark or a picture has no name")
        figures = of("figure")
        pictures = [it for node in figures for it in below(node) if value(it, "role") in drawn]
        names = [value(node, "name") for node in pictures]
        self.check(len(figures) == len(names), f"{len(figures)} figures, {len(names)} pictures")
        for node, name in zip(pictures, names):
            self.check(names.count(name) == 1, f"several pictures have the name: {name}")
            self.check(value(node, "description"), f"a picture has no description: {name}")
        tables = of("table") + of("grid")
        for node in tables:
            name = value(node, "name")
            self.check(name, f"a table has no name: {value(node, 'description')[:80]}")
            roles = {value(it, "role") for it in below(node)}
            for role in ("columnheader", "rowheader"):
                self.check(role in roles, f"the table '{name}' has no {role}")
        text = " ".join(value(node, "name") for node in of("StaticText") + headings)
        self.said(" ".join(text.split()), headings, value)
        return len(headings), len(pictures), len(tables)

    def said(self, text, headings, value):
        """The verdict of `summary.json`, if there is one beside the page."""
        summary = Path(self.address.removeprefix("file://")).parent / "summary.json"
        said = json.loads(summary.read_text()).get("said") if summary.exists() else None
        if said is None:
            return
        plain = "".join(" " if it in "\u00a0\u202f" else it for it in text)
        first = " ".join(value(headings[1], "name").replace("\u00a0", " ").split())
        self.check(said["headline"] in first, f"the second heading is: {first}")
        for sentence in [point["text"] for point in said["points"]] + said["asides"]:
            # Claims and numbers are elements of their own.
            for part in sentence.replace(" (", "\0(").split("\0"):
                self.check(part in plain, f"not in the tree: {part}")


def browser():
    """A browser without a window."""
    options = Options()
    # Containers and root have no user namespaces for the browser's own sandbox.
    for argument in ("--headless=new", "--no-sandbox", "--disable-dev-shm-usage",
                     "--disable-background-networking", "--hide-scrollbars"):
        options.add_argument(argument)
    return webdriver.Chrome(options=options, service=Service("chromedriver"))


def check(address):
    """What is found of a page, in lines, and whether all is right."""
    with browser() as open_browser:
        page = Page(open_browser, address)
        page.audit(WIDTHS[0], "light", is_open=False)
        page.audit(WIDTHS[-1], "dark", is_open=True)
        for width in WIDTHS:
            page.fit(width)
        stops = page.tab()
        folded = page.fold()
        scrolled = page.scroll()
        links = page.links()
        headings, pictures, tables = page.tree()
    text = (f"{address}: {stops} tab stops, {folded} folds, {scrolled} that scroll, {links} links,"
            f" {headings} headings, {pictures} pictures, {tables} tables: ")
    text += f"{len(page.wrong)} faults" if page.wrong else "no violation"
    return [text] + [f"  wrong: {it}" for it in page.wrong], not page.wrong


def main():
    pages = sys.argv[1:]
    if not pages:
        print(__doc__, file=sys.stderr)
        sys.exit(2)
    addresses = [page if page.startswith("http") else Path(page).resolve().as_uri()
                 for page in pages]
    are_right = True
    # Most of the time goes by in waiting for the browser.
    with ThreadPoolExecutor(AT_ONCE) as pool:
        for lines, is_right in pool.map(check, addresses):
            print("\n".join(lines), flush=True)
            are_right &= is_right
    sys.exit(0 if are_right else 1)


if __name__ == "__main__":
    main()
