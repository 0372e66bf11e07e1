# SPDX-License-Identifier: Apache-2.0
"""The cost report: the dict of `einc FILE --report=json`, which notebooks show as a page."""

from __future__ import annotations

import html
import json
from typing import Any, Callable

from einc import _einc


class Report(dict[str, Any]):
    """A dict (`report["flops"]["step"]`, `report["memory"]["peak_training"]["symbolic"]`) with two more forms: `text`, which print
    shows, and `html`, one page without a network, which notebooks show."""

    def __init__(self, render: Callable[[_einc.ReportForm], str]) -> None:
        super().__init__(json.loads(render(_einc.ReportForm.json)))
        self._render = render

    @property
    def text(self) -> str:
        return self._render(_einc.ReportForm.text)

    @property
    def html(self) -> str:
        return self._render(_einc.ReportForm.html)

    def __str__(self) -> str:
        return self.text

    def _repr_html_(self) -> str:
        # The page's own styles must not reach the notebook's, so it stands in a frame.
        return f'<iframe srcdoc="{html.escape(self.html)}" width="100%" height="640" style="border: 0"></iframe>'
