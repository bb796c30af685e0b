"""A browser over the pages of a small site."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

CHROMIUM, DRIVER = shutil.which("chromium"), shutil.which("chromedriver")
if not (CHROMIUM and DRIVER):
    pytest.skip("there is no chromium and chromedriver here", allow_module_level=True)
webdriver = pytest.importorskip("selenium.webdriver", reason="selenium is not installed")

from selenium.webdriver.common.by import By  # noqa: E402  (skipped above where there is none)
from selenium.webdriver.common.keys import Keys  # noqa: E402
from selenium.webdriver.support.wait import WebDriverWait  # noqa: E402

__all__ = ["Browser", "By", "Keys"]


class Browser:
    """A driver over the pages of a small site."""

    def __init__(self, folder: Path) -> None:
        options = webdriver.ChromeOptions()
        options.binary_location = CHROMIUM
        for argument in ("--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"):
            options.add_argument(argument)
        options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
        self.folder = folder
        self.driver = webdriver.Chrome(options=options, service=webdriver.ChromeService(executable_path=DRIVER))

    def open(self, page: str, width: int = 1400) -> None:
        """Open a page anew, at a width."""
        size = {"width": width, "height": 1000, "deviceScaleFactor": 1, "mobile": False}
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
        self.driver.get("about:blank")
        self.driver.get(f"file://{self.folder}/{page}")
        self.until("return document.readyState === 'complete'")

    def until(self, script: str, *arguments) -> None:
        """Wait until a script returns something true."""
        wait = WebDriverWait(self.driver, 60, poll_frequency=0.05)
        wait.until(lambda driver: driver.execute_script(script, *arguments), script)

    def all(self, selector: str) -> list:
        """The elements of a selector that are shown."""
        return [each for each in self.driver.find_elements(By.CSS_SELECTOR, selector) if each.is_displayed()]

    def run(self, script: str, *arguments) -> object:
        """Return the value of a script."""
        return self.driver.execute_script(script, *arguments)

    def faults(self) -> list[str]:
        """Errors on the console since the last call."""
        return [entry["message"] for entry in self.driver.get_log("browser") if entry["level"] == "SEVERE"]

    def requests(self) -> list[str]:
        """Return the addresses requested since the last call."""
        messages = [json.loads(entry["message"])["message"] for entry in self.driver.get_log("performance")]
        return [m["params"]["request"]["url"] for m in messages if m["method"] == "Network.requestWillBeSent"]
