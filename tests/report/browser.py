"""A headless Chromium for tests, spoken to over a pipe (the DevTools protocol): no driver and no library is needed."""

from __future__ import annotations

import base64
import json
import os
import select
import shutil
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")
_PATIENCE = 60.0


def found() -> str | None:
    """The browser that is installed, if one is."""
    return next((path for name in NAMES if (path := shutil.which(name)) is not None), None)


class Browser:
    """One tab of a browser; ``events`` holds what it told of, in order."""

    def __init__(self, to_browser: int, from_browser: int) -> None:
        self._to, self._from = to_browser, from_browser
        self._buffer = b""
        self._number = 0
        self._session: str | None = None
        self.events: list[dict[str, Any]] = []
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")

    def call(self, method: str, **parameters: Any) -> Any:
        """The result of a command."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": parameters}
        if self._session is not None:
            message["sessionId"] = self._session
        os.write(self._to, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._next()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                return answer["result"]
            self.events.append(answer)

    def _next(self) -> dict[str, Any]:
        end = time.monotonic() + _PATIENCE
        while b"\0" not in self._buffer:
            ready, _, _ = select.select([self._from], [], [], max(end - time.monotonic(), 0))
            assert ready, "the browser does not answer"
            more = os.read(self._from, 1 << 16)
            assert more, "the browser has ended"
            self._buffer += more
        text, _, self._buffer = self._buffer.partition(b"\0")
        answer: dict[str, Any] = json.loads(text)
        return answer

    def open(self, path: Path, fragment: str = "") -> None:
        """Load a file and wait until it is there."""
        self.events.clear()
        self.call("Page.navigate", url=path.as_uri() + fragment)
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._next())

    def value(self, expression: str) -> Any:
        """The value of JavaScript."""
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key: str) -> None:
        """A key goes down and up."""
        text = {"text": key} if len(key) == 1 else {}
        self.call("Input.dispatchKeyEvent", type="keyDown", key=key, **text)
        self.call("Input.dispatchKeyEvent", type="keyUp", key=key)

    def prefer(self, scheme: str) -> None:
        """Ask for the ``light`` or the ``dark`` colours."""
        self.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])

    def screenshot(self, path: Path) -> None:
        """A picture of what can be seen."""
        path.write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png")["data"]))

    def pdf(self) -> bytes:
        """The pages as they are printed."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def troubles(self) -> list[str]:
        """Errors, what the content security policy refused, and requests for anything but files."""
        told = []
        for event in self.events:
            method, parameters = event.get("method"), event.get("params", {})
            if method == "Runtime.exceptionThrown":
                told.append(str(parameters["exceptionDetails"]))
            elif method == "Log.entryAdded":
                told.append(str(parameters["entry"]["text"]))
            elif method == "Network.requestWillBeSent":
                url = str(parameters["request"]["url"])
                told += [] if url.startswith("file:") else [url]
        return told


@contextmanager
def running(profile: Path, width: int = 1300, height: int = 1000) -> Iterator[Browser]:
    """A browser that keeps its files in ``profile``."""
    program = found()
    assert program is not None
    read_there, write_here = os.pipe()
    read_here, write_there = os.pipe()
    # The browser reads from descriptor 3 and writes to 4.
    script = 'exec 3<&"$1" 4>&"$2"; shift 2; exec "$@"'
    command = [
        program, "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--no-first-run",
        "--disable-background-networking", f"--window-size={width},{height}", f"--user-data-dir={profile}",
        "--remote-debugging-pipe", "about:blank",
    ]  # fmt: skip
    process = subprocess.Popen(
        ["bash", "-c", script, "bash", str(read_there), str(write_there), *command],
        pass_fds=(read_there, write_there),
        stderr=subprocess.DEVNULL,
    )
    os.close(read_there)
    os.close(write_there)
    try:
        yield Browser(write_here, read_here)
    finally:
        os.close(write_here)
        process.terminate()
        process.wait(timeout=30)
        os.close(read_here)
