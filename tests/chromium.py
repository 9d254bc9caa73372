"""A headless Chromium of the system for the pages of `--html`; tests that need it skip without it."""

import shutil
from contextlib import contextmanager
from datetime import datetime, timedelta

import pytest

#: It draws without a GPU or a sandbox (tests run as root), and asks nobody for updates.
_ARGUMENTS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)

#: The time at which a page is opened.
_BEGIN = datetime(2024, 1, 1)


@contextmanager
def chromium():
    """The browser as playwright's `Browser`; skips the test where there is none."""
    executable = shutil.which("chromium") or shutil.which("chromium-browser")
    if executable is None:
        pytest.skip("needs Chromium: the system's package chromium")
    playwright = pytest.importorskip("playwright.sync_api", reason="needs the Python package playwright")
    with playwright.sync_playwright() as driver:
        browser = driver.chromium.launch(executable_path=executable, args=list(_ARGUMENTS))
        try:
            yield browser
        finally:
            browser.close()


class Watched:
    """A page of the browser in a context of its own, and what it complained of or asked the network for."""

    def __init__(self, browser, path, **context):
        self._context = browser.new_context(**context)
        self.page = self._context.new_page()
        self.complaints = []
        self.requests = []
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("request", lambda request: self.requests.append(request.url))
        self._address = path.as_uri()

    def __enter__(self):
        # The test moves the clock: an hour later it stands still.
        self.page.clock.install(time=_BEGIN)
        self.page.goto(self._address)
        self.page.clock.pause_at(_BEGIN + timedelta(hours=1))
        return self

    def __exit__(self, kind, error, trace):
        try:
            if kind is None:
                assert self.complaints == []
                assert self.requests == [self._address]
        finally:
            self._context.close()
