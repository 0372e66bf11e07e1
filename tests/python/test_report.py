# SPDX-License-Identifier: Apache-2.0
"""The report: the command's JSON as a dict, formulas where dims are free, and a page in notebooks."""

import html
import json

from conftest import LINEAR

import einc


def test_counts_are_those_of_the_formulas(linear):
    report = linear.report()
    assert report["dims"] == {"batch": 4, "features": 3}
    assert report["parameters"]["count"] == 3
    assert report["flops"]["forward"]["contraction"] == 2 * 4 * 3
    assert report["flops"]["forward"]["symbolic"]["contraction"] == "2*batch*features"


def test_free_dims_leave_formulas():
    report = einc.report(LINEAR)
    assert report["free_dims"] == ["batch"] and report["flops"]["step"] is None
    assert report["flops"]["forward"]["symbolic"]["contraction"] == "2*batch*features"


def test_a_device_that_is_not_here():
    report = einc.report(LINEAR, dims={"batch": 4}, device="h200")
    assert "h200" in report["device"]["name"].lower()


def test_forms(linear):
    report = linear.report()
    assert json.loads(json.dumps(report)) == report
    assert "FLOPs" in str(report) and report.text == str(report)
    page = report.html
    assert "<html" in page and "http://" not in page.split("<body")[0]
    shown = report._repr_html_()
    assert shown.startswith("<iframe srcdoc=") and html.unescape(shown.split('"')[1]) == page
