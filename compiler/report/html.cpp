// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/html.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "compiler/report/document.h"
#include "compiler/report/json.h"
#include "compiler/report/treemap.h"

namespace einc {
namespace {

constexpr const char* kStyle = R"(
:root { color-scheme: light; --ink: #1d2430; --dim: #667085; --rule: #e4e7ec;
        --forward: #3b6fb6; --backward: #c8642b; --optimizer: #3d8a5f; }
* { box-sizing: border-box; }
body { margin: 0 auto; max-width: 1080px; padding: 16px; color: var(--ink); background: #fff;
       font: 15px/1.5 system-ui, "DejaVu Sans", Helvetica, Arial, sans-serif; overflow-wrap: anywhere; }
h1 { font-size: 1.6em; margin: 8px 0; } h2 { font-size: 1.15em; margin: 28px 0 8px; border-bottom: 1px solid var(--rule); }
small { color: var(--dim); font-weight: normal; }
p { margin: 4px 0; } .summary p { font-size: 1.05em; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; font-size: 13px; }
td, th { padding: 2px 12px 2px 0; text-align: left; vertical-align: top; overflow-wrap: normal; }
th { color: var(--dim); font-weight: 600; }
.n { text-align: right; white-space: nowrap; }
svg { width: 100%; min-width: 680px; height: auto; display: block; font-size: 12px; } svg a:focus rect { stroke: #000; stroke-width: 2; }
.forward { fill: var(--forward); } .backward { fill: var(--backward); } .optimizer { fill: var(--optimizer); }
.key span { display: inline-block; width: 12px; height: 12px; margin: 0 6px 0 14px; vertical-align: -1px; }
pre { overflow-x: auto; font: 12.5px/1.5 ui-monospace, "DejaVu Sans Mono", Menlo, monospace; background: #f8f9fb; padding: 8px; }
pre span { display: block; white-space: pre; }
pre span::before { content: attr(data-line); display: inline-block; width: 3.5em; color: var(--dim); }
pre span:target { background: #ffe9a8; }
@media (max-width: 640px) {  /* a phone: formulas below their numbers */
  table:not(.rows) td { white-space: nowrap; } table.rows, .rows tbody { display: block; }
  .rows tr { display: flex; flex-wrap: wrap; border-bottom: 1px solid var(--rule); }
  .rows td { flex: 1 0 4em; padding-right: 6px; white-space: normal; } .rows td:first-child { flex-basis: 5.5em; }
  .rows td.f { flex: 1 0 100%; color: var(--dim); }
}
@media print { body { max-width: none; padding: 0; font-size: 11px; } .scroll, pre { overflow: visible; } svg { min-width: 0; }
               pre span { white-space: pre-wrap; } section { break-inside: avoid-page; } }
)";

constexpr double kWidth = 1000;

class Page {
 public:
  Page(const Report& report, const Graph& graph, std::span<const ReportSource> sources) : r_(report), graph_(graph), sources_(sources) {
    timed_ = !r_.schedule.empty() && r_.schedule.front().time_s.has_value();
  }

  std::string run() {
    const std::string title = html_text(r_.model.empty() ? "program" : r_.model);
    add("<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
        "<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n<title>{}: what it costs</title>\n",
        title);
    out_ += fmt::format("<style>{}</style>\n</head>\n<body>\n", kStyle);
    add("<h1>{} <small>{}</small></h1>\n<div class=\"summary\">\n", title, html_text(r_.precision));
    summary();
    out_ += "</div>\n";
    if (!r_.schedule.empty()) {
      work();
      memory();
      roofline();
    }
    out_ += report_document(r_, 100).html();
    source();
    // A text may end a script by "</script>" where JSON stands: "<" is written as an escape.
    std::string json = render_json(r_, graph_);
    for (size_t at = 0; (at = json.find('<', at)) != std::string::npos; at += 6) json.replace(at, 1, "\\u003c");
    out_ += "<script type=\"application/json\" id=\"report\">" + json + "</script>\n</body>\n</html>\n";
    return std::move(out_);
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    out_ += fmt::format(format, std::forward<T>(values)...);
  }

  void summary() {
    const std::string text = render_summary(r_);
    for (size_t begin = 0; begin < text.size();) {
      const size_t end = std::min(text.find('\n', begin), text.size());
      add("<p>{}</p>\n", html_text(text.substr(begin, end - begin)));
      begin = end + 1;
    }
  }

  // Where a line of the program stands on the page; empty where its file is not shown.
  std::string place_of(const SourceLocation& at) const {
    for (size_t f = 0; f < sources_.size(); ++f)
      if (at.line > 0 && sources_[f].name == at.file.str()) return fmt::format("f{}-{}", f, at.line);
    return "";
  }

  std::string linked(const SourceLocation& at, const std::string& shown) const {
    const std::string place = place_of(at);
    return place.empty() ? shown : fmt::format("<a href=\"#{}\">{}</a>", place, shown);
  }

  std::string described(const LaunchReport& l) const {
    const KernelWork& work = l.traffic.work;
    std::string text = fmt::format("{}\n{}, {} x {}, {} of all", l.name, l.kind, l.count, to_string(l.phase), percent(l.share));
    text += fmt::format("\neach {} FLOPs, {}", human_count(static_cast<double>(work.flops())),
                        human_bytes(static_cast<double>(work.bytes_read + work.bytes_written)));
    if (l.time_s) text += fmt::format(", {}, bound by {}", human_seconds(*l.time_s), to_string(l.bound));
    if (l.source.line > 0) text += fmt::format("\n{}:{}", l.source.file.str(), l.source.line);
    return html_text(text);
  }

  // As much of a text as fits a width, at so many units a character.
  static std::string fitted(const std::string& text, double width, double character = 6.6) {
    const auto room = static_cast<size_t>(std::max(0.0, (width - 8) / character));
    if (text.size() <= room) return html_text(text);
    return room < 4 ? "" : html_text(text.substr(0, room - 1)) + "…";
  }

  // ---- modules, and their kernels within them

  void work() {
    constexpr double kHeight = 460, kHead = 17;
    add("<section>\n<h2>{} <small>modules, and the kernels in them; click one to see its line of the program</small></h2>\n",
        timed_ ? "Where the time goes" : "Where the work is, by FLOPs");
    out_ += "<p class=\"key\">";
    for (const Phase phase : {Phase::forward, Phase::backward, Phase::optimizer})
      add("<span style=\"background:var(--{0})\"></span>{0}", to_string(phase));
    out_ += "</p>\n";
    std::map<std::string, std::vector<const LaunchReport*>> modules;
    for (const LaunchReport& l : r_.schedule)
      if (l.share > 0) modules[l.module].push_back(&l);
    std::vector<double> weights;
    for (const auto& [name, launches] : modules) {
      double sum = 0;
      for (const LaunchReport* l : launches) sum += l->share;
      weights.push_back(sum);
    }
    add("<div class=\"scroll\"><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"treemap of kernels\">\n", kWidth, kHeight);
    // A treemap of modules, and in each box one of its kernels: a module's share can be read off, and what in it takes the time.
    const std::vector<Rectangle> boxes = treemap(weights, {0, 0, kWidth, kHeight});
    size_t m = 0;
    for (const auto& [name, launches] : modules) {
      const Rectangle box = boxes[m];
      const bool named = box.height > 2 * kHead && box.width > 40;
      std::vector<double> shares;
      for (const LaunchReport* l : launches) shares.push_back(l->share);
      const double head = named ? kHead : 0;
      const std::vector<Rectangle> parts = treemap(shares, {box.x, box.y + head, box.width, std::max(0.0, box.height - head)});
      for (size_t i = 0; i < launches.size(); ++i) kernel(*launches[i], parts[i]);
      if (named)
        add("<text x=\"{:.1f}\" y=\"{:.1f}\" font-weight=\"600\">{}</text>\n", box.x + 4, box.y + 13,
            fitted(fmt::format("{} {}", name.empty() ? "(program)" : name, percent(weights[m])), box.width, 7.3));
      add("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" fill=\"none\" stroke=\"#1d2430\"/>\n", box.x, box.y,
          box.width, box.height);
      ++m;
    }
    out_ += "</svg></div>\n</section>\n";
  }

  void kernel(const LaunchReport& l, const Rectangle& r) {
    if (r.width < 0.5 || r.height < 0.5) return;  // nobody sees it, and a large model has thousands
    const std::string own = l.module.empty() ? l.name : l.name.substr(std::min(l.name.size(), l.module.size() + 2));
    std::string shape =
        fmt::format("<g><title>{}</title><rect class=\"{}\" x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" stroke=\"#fff\"/>",
                    described(l), to_string(l.phase), r.x, r.y, r.width, r.height);
    if (r.height > 16)
      shape += fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" fill=\"#fff\">{}</text>", r.x + 4, r.y + 14, fitted(own, r.width));
    out_ += linked(l.source, shape + "</g>") + "\n";
  }

  // ---- memory over the step

  void memory() {
    const MemoryReport& m = r_.memory;
    if (!m.at_peak || m.over_step.size() < 2) return;
    constexpr double kHeight = 220, kLeft = 84, kBottom = 24, kTop = 12;
    const auto peak = static_cast<double>(m.at_peak->total());
    // Launches stand at their predicted times; without times, or of a run that the schedule is not of, side by side.
    const bool by_time = timed_ && r_.row_of_launch.size() == m.over_step.size();
    std::vector<double> starts{0};
    for (size_t i = 0; i < m.over_step.size(); ++i) {
      const uint32_t row = by_time ? r_.row_of_launch[i] : kNoRow;
      starts.push_back(starts.back() + (!by_time ? 1 : row == kNoRow ? 0 : *r_.schedule[row].time_s));
    }
    const auto at_x = [&](size_t launch) { return kLeft + (kWidth - kLeft - 8) * starts[launch] / starts.back(); };
    const auto at_y = [&](double bytes) { return kHeight - kBottom - (kHeight - kBottom - kTop) * bytes / (peak * 1.02); };
    add("<section>\n<h2>Memory over the step <small>bytes in use {} {} launches; the peak is at {}</small></h2>\n",
        by_time ? "over the predicted time of" : "at each of", m.over_step.size(), html_text(m.at_peak->launch));
    add("<div class=\"scroll\"><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"memory at each launch\">\n", kWidth, kHeight);
    // Params, moments and inputs are there all the time.
    const PlannedMemory& at = *m.at_peak;
    const auto always = static_cast<double>(at.parameters + at.gradients + at.optimizer_state + at.state + at.inputs);
    std::string path = fmt::format("M{:.1f} {:.1f}", at_x(0), at_y(0));
    for (size_t i = 0; i < m.over_step.size(); ++i)
      path += fmt::format("V{:.1f}H{:.1f}", at_y(static_cast<double>(m.over_step[i])), at_x(i + 1));
    add("<path d=\"{}V{:.1f}Z\" fill=\"#b7c9e2\"/>\n", path, at_y(0));
    add("<rect x=\"{0}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" fill=\"#8793a6\"><title>parameters, gradients, optimizer "
        "state, "
        "states and inputs: {4}</title></rect>\n",
        kLeft, at_y(always), kWidth - kLeft - 8, at_y(0) - at_y(always), human_bytes(always));
    for (const double mark : {0.0, always, peak}) {
      const bool crowded = mark == always && (at_y(0) - at_y(mark) < 14 || at_y(mark) - at_y(peak) < 14);
      if (crowded) continue;
      add("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#1d2430\" stroke-dasharray=\"3 3\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          kLeft, kWidth - 8, at_y(mark), kLeft - 6, at_y(mark) + 4, human_bytes(mark));
    }
    add("<text x=\"{}\" y=\"{}\">grey: parameters, optimizer state and inputs, throughout; blue: other values in use; upper line: "
        "reserved</text>\n",
        kLeft, kHeight - 6);
    out_ += "</svg></div>\n</section>\n";
  }

  // ---- FLOPs a second against FLOPs a byte

  void roofline() {
    if (!timed_ || !r_.device) return;
    const Device& d = r_.device->device;
    struct Point {
      const LaunchReport* launch;
      double intensity, rate;
    };
    std::vector<Point> points;
    for (const LaunchReport& l : r_.schedule) {
      const KernelWork& work = l.traffic.work;
      const auto flops = static_cast<double>(work.flops()), bytes = static_cast<double>(work.bytes_read + work.bytes_written);
      // Of all bytes that it touches, not of memory's alone: a point's place is the kernel's own, whatever the cache holds before it.
      if (flops > 0 && bytes > 0 && *l.time_s > 0) points.push_back({&l, flops / bytes, flops / *l.time_s});
    }
    if (points.empty() || r_.device->peak_flops <= 0) return;
    double low = 0.01, high = r_.device->peak_flops / d.bandwidth * 10, bottom = r_.device->peak_flops;
    for (const Point& p : points) low = std::min(low, p.intensity), high = std::max(high, p.intensity), bottom = std::min(bottom, p.rate);
    constexpr double kHeight = 360, kLeft = 84, kBottom = 40, kTop = 16;
    high *= 1.6;  // room for the circles
    const double top = r_.device->peak_flops * 3;
    bottom /= 2;
    const auto scaled = [](double value, double from, double to) { return std::log(value / from) / std::log(to / from); };
    const auto at_x = [&](double intensity) { return kLeft + (kWidth - kLeft - 8) * scaled(intensity, low, high); };
    const auto at_y = [&](double rate) { return kHeight - kBottom - (kHeight - kBottom - kTop) * scaled(rate, bottom, top); };
    add("<section>\n<h2>Roofline <small>{}: FLOPs a second that each kernel is predicted to reach, and the peaks of contractions and of "
        "memory; "
        "kernels above the line read from the cache</small></h2>\n",
        html_text(d.name));
    add("<div class=\"scroll\"><svg viewBox=\"0 0 {} {}\" role=\"img\" aria-label=\"roofline\">\n", kWidth, kHeight);
    for (double tick = std::pow(10, std::ceil(std::log10(low))); tick <= high; tick *= 10)
      add("<line x1=\"{0:.1f}\" x2=\"{0:.1f}\" y1=\"{1}\" y2=\"{2}\" stroke=\"#e4e7ec\"/><text x=\"{0:.1f}\" y=\"{3}\" "
          "text-anchor=\"middle\">{4:g}</text>\n",
          at_x(tick), kTop, kHeight - kBottom, kHeight - kBottom + 16, tick);
    for (double tick = std::pow(10, std::ceil(std::log10(bottom))); tick <= top; tick *= 10)
      add("<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#e4e7ec\"/><text x=\"{3}\" y=\"{4:.1f}\" "
          "text-anchor=\"end\">{5}</text>\n",
          kLeft, kWidth - 8, at_y(tick), kLeft - 6, at_y(tick) + 4, human_count(tick));
    add("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\">FLOPs a byte</text>\n", (kWidth + kLeft) / 2, kHeight - 6);
    const double ridge = std::clamp(r_.device->peak_flops / d.bandwidth, low, high), start = std::max(low, bottom / d.bandwidth);
    add("<path d=\"M{:.1f} {:.1f}L{:.1f} {:.1f}L{:.1f} {:.1f}\" fill=\"none\" stroke=\"#1d2430\" stroke-width=\"2\"/>\n", at_x(start),
        at_y(d.bandwidth * start), at_x(ridge), at_y(d.bandwidth * ridge), at_x(high), at_y(r_.device->peak_flops));
    for (const Point& p : points)
      out_ += linked(p.launch->source,
                     fmt::format(
                         "<circle class=\"{}\" cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" fill-opacity=\"0.65\"><title>{}</title></circle>",
                         to_string(p.launch->phase), at_x(p.intensity), at_y(p.rate), 3 + 40 * std::sqrt(p.launch->share),
                         described(*p.launch))) +
              "\n";
    out_ += "</svg></div>\n</section>\n";
  }

  void source() {
    for (size_t f = 0; f < sources_.size(); ++f) {
      const std::string& text = sources_[f].text;
      add("<section>\n<h2>{}</h2>\n<pre>", html_text(sources_[f].name));
      size_t line = 1;
      for (size_t begin = 0; begin < text.size(); ++line) {
        const size_t end = std::min(text.find('\n', begin), text.size());
        add("<span id=\"f{}-{}\" data-line=\"{}\">{}</span>", f, line, line, html_text(text.substr(begin, end - begin)));
        begin = end + 1;
      }
      out_ += "</pre>\n</section>\n";
    }
  }

  const Report& r_;
  const Graph& graph_;
  const std::span<const ReportSource> sources_;
  bool timed_ = false;
  std::string out_;
};

}  // namespace

std::string render_html(const Report& report, const Graph& graph, std::span<const ReportSource> sources) {
  return Page(report, graph, sources).run();
}

}  // namespace einc
