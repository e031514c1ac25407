# SPDX-License-Identifier: Apache-2.0
"""A headless Chromium for tests, over the DevTools protocol: it opens pages, evaluates JavaScript, presses keys, and
keeps what the console reports."""

import base64
import json
import os
import select
import shutil
import subprocess
import tempfile
import time

BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def find_browser():
    """Returns the path of a browser, or None."""
    return next((path for path in map(shutil.which, BROWSERS) if path), None)


class Browser:
    """A browser with one page. Messages are passed through two pipes, each followed by a zero byte."""

    DEADLINE = 60  # seconds for an answer; a loaded machine may take a while

    def __init__(self, width=1280, height=900, dark=False):
        self.profile = tempfile.mkdtemp(prefix="phalanx-browser-")
        to_browser, self._write = os.pipe()
        self._read, from_browser = os.pipe()

        def hand_over():
            # The browser expects its pipes at 3 and 4.
            reading, writing = os.dup(to_browser), os.dup(from_browser)
            os.dup2(reading, 3)
            os.dup2(writing, 4)

        self._process = subprocess.Popen(
            [find_browser(), "--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--disable-dev-shm-usage",
             "--no-first-run", "--disable-background-networking", "--disable-extensions", "--mute-audio",
             f"--user-data-dir={self.profile}", "--remote-debugging-pipe", "about:blank"],
            preexec_fn=hand_over, close_fds=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self._received, self._count, self._session = b"", 0, None
        self.problems = []  # errors and warnings of the console, exceptions, and files that were not found
        targets = self.call("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        self._session = self.call("Target.attachToTarget", targetId=page["targetId"], flatten=True)["sessionId"]
        for domain in ("Page", "Runtime", "Log"):
            self.call(domain + ".enable")
        self.resize(width, height)
        self.call("Emulation.setEmulatedMedia",
                  features=[{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}])

    def close(self):
        os.close(self._write)
        os.close(self._read)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        shutil.rmtree(self.profile, ignore_errors=True)

    def call(self, method, **parameters):
        """Sends a command and returns its result."""
        self._count += 1
        message = {"id": self._count, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._write, json.dumps(message).encode() + b"\0")
        end = time.monotonic() + self.DEADLINE
        while True:
            answer = self._receive(end)
            if answer.get("id") == self._count:
                assert "error" not in answer, f"{method}: {answer['error']}"
                return answer["result"]
            self._note(answer)

    def _receive(self, end):
        while b"\0" not in self._received:
            left = end - time.monotonic()
            if left <= 0 or not select.select([self._read], [], [], left)[0]:
                raise AssertionError("the browser does not answer")
            piece = os.read(self._read, 1 << 16)
            assert piece, "the browser has ended"
            self._received += piece
        message, _, self._received = self._received.partition(b"\0")
        return json.loads(message)

    def _note(self, event):
        parameters = event.get("params", {})
        if event.get("method") == "Log.entryAdded" and parameters["entry"]["level"] in ("error", "warning"):
            self.problems.append(f"{parameters['entry']['text']} {parameters['entry'].get('url', '')}")
        elif event.get("method") == "Runtime.exceptionThrown":
            details = parameters["exceptionDetails"]
            self.problems.append(details.get("exception", {}).get("description", details["text"]))
        elif event.get("method") == "Runtime.consoleAPICalled" and parameters["type"] in ("error", "warning", "assert"):
            self.problems.append(str([argument.get("value") for argument in parameters["args"]]))

    def resize(self, width, height):
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1,
                  mobile=width < 600)

    def evaluate(self, expression):
        """Returns the value of a JavaScript expression, which may be a promise."""
        answer = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in answer, f"{expression}: {answer['exceptionDetails']}"
        return answer["result"].get("value")

    def wait_until(self, expression):
        """Waits until a JavaScript expression is true."""
        end = time.monotonic() + self.DEADLINE
        while True:
            if self.evaluate(f"Boolean({expression})"):
                return
            assert time.monotonic() < end, f"never true: {expression}\n{self.problems}\n{self.text()[:2000]}"
            time.sleep(0.02)

    def open(self, address):
        """Opens an address, and waits until its page is shown."""
        self.call("Page.navigate", url=address)
        self._wait_for_page()

    def reload(self):
        self.evaluate("void (window.isOld = true)")
        self.call("Page.reload")
        self._wait_for_page()

    def _wait_for_page(self):
        self.wait_until("!window.isOld && document.readyState === 'complete' && document.body.dataset.shown")

    def go(self, hash):
        """Shows another page of the same site, and waits for it."""
        before = self.evaluate("document.body.dataset.shown")
        self.evaluate(f"void (location.hash = {json.dumps(hash)})")
        self.wait_until(f"document.body.dataset.shown !== {json.dumps(before)}")

    def text(self, selector="body"):
        return self.evaluate(f"document.querySelector({json.dumps(selector)})?.innerText ?? ''")

    def click(self, selector):
        """Clicks an element, which must exist, with the mouse at its centre."""
        x, y = self.evaluate(f"""(() => {{ const element = document.querySelector({json.dumps(selector)});
            element.scrollIntoView({{block: "center", inline: "center"}}); const box = element.getBoundingClientRect();
            return [box.x + box.width / 2, box.y + box.height / 2]; }})()""")
        for kind in ("mousePressed", "mouseReleased"):
            self.call("Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1)

    def press(self, key):
        codes = {"Tab": 9, "Enter": 13, "ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        text = {"text": "\r"} if key == "Enter" else {}
        for kind in ("keyDown", "keyUp"):
            self.call("Input.dispatchKeyEvent", type=kind, key=key, code=key, windowsVirtualKeyCode=codes[key],
                      **(text if kind == "keyDown" else {}))

    def choose(self, name, value):
        """Sets the control of a form as a reader would."""
        self.evaluate(f"""(() => {{ const control = document.querySelector('[name="{name}"]');
            control.value = {json.dumps(value)};
            control.dispatchEvent(new Event(control.tagName === "SELECT" ? "change" : "input", {{bubbles: true}})); }})()""")

    def screenshot(self, path, whole=True):
        data = self.call("Page.captureScreenshot", format="png", captureBeyondViewport=whole)["data"]
        with open(path, "wb") as file:
            file.write(base64.b64decode(data))
