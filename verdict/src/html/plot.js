// Draws the plots of a page. Each `figure.plot` has its data as JSON (`chart/plot.rs`). uPlot does
// axes, legend, cursor and zoom; the marks are painted here.
(() => {
  "use strict";

  const root = document.documentElement;
  const style = getComputedStyle(root);
  const css = (name) => style.getPropertyValue(name).trim();
  const ink = (number) => css(number ? `--c${number}` : "--ink");
  const FONT = '12px system-ui, "Segoe UI", Roboto, "Helvetica Neue", "DejaVu Sans", sans-serif';
  const DASHES = { dash: [8, 4], dots: [2, 3], dashdot: [9, 3, 2, 3] };
  const BORDERS = { dash: "dashed", dots: "dotted", dashdot: "dashed" };
  // Below this width, in CSS pixels, the names of rows are above their marks.
  const NARROW = 620;
  // Width of a printed page between its margins, in CSS pixels.
  const PAPER = 680;
  const drawn = [];

  // ---- Numbers as the tables have them ----

  const grouped = (n) => Math.round(n).toString().replace(/\B(?=(\d{3})+$)/g, ",");
  const plain = (n) => (Math.abs(n) < 9.995 ? n.toFixed(2) : Math.abs(n) < 99.95 ? n.toFixed(1) : grouped(n));
  const LONG = [["µs", 1e3], ["ms", 1e6], ["s", 1e9], ["h", 3.6e12], ["d", 8.64e13]];
  const SHORT = [["s", 1e9], ["ms", 1e6], ["µs", 1e3], ["ns", 1]];

  function duration(ns) {
    if (ns < 0) return "−" + duration(-ns);
    if (ns < 9999.5) return grouped(ns) + " ns";
    const [symbol, size] = LONG.find((unit) => ns / unit[1] < 9999.5) ?? LONG[4];
    return `${plain(ns / size)} ${symbol}`;
  }

  function number(n) {
    const [symbol, size] = [["G", 1e9], ["M", 1e6], ["k", 1e3]].find((unit) => n >= unit[1] && n >= 1e4) ?? ["", 1];
    const value = +(n / size).toPrecision(6);
    return symbol ? `${value} ${symbol}` : value >= 1e3 ? grouped(value) : String(value);
  }

  // The percentile of 1/(1 − q), with as many digits as it has nines.
  function percentile(inverse) {
    const digits = Math.max(0, Math.ceil(Math.log10(inverse) - 1 - 1e-9));
    return `${(100 - 100 / inverse).toFixed(inverse <= 2 ? 0 : Math.max(digits - 1, 0))}%`;
  }

  const VALUES = {
    duration,
    percentile: (n) => `${(100 - 100 / n).toFixed(Math.max(0, Math.ceil(Math.log10(n)) - 1))}%`,
    number: (n) => (Math.abs(n) < 100 ? String(+n.toPrecision(4)) : grouped(n)),
  };

  // The smallest 1, 2 or 5 times a power of ten that is not below a length.
  function step(length) {
    const decade = 10 ** Math.floor(Math.log10(length));
    return [1, 2, 5, 10].map((mark) => mark * decade).find((mark) => mark >= length * (1 - 1e-9));
  }

  // ---- Axes ----

  // Ticks of an axis of this length in pixels, `gap` of which a label takes: [value, has a label].
  function ticks(axis, min, max, length, gap) {
    if (axis.unit === "names") {
      return axis.names.map((_, index) => [index + (axis.lanes ? 0.5 : 0), true]);
    }
    if (axis.unit === "percentile") {
      const nines = [...Array(18).keys()].map((nine) => 10 ** (nine + 1));
      return [1, 2, ...nines].filter((value) => value >= min * 0.999 && value <= max)
        .map((value) => [value, value > 1 || length > 500]);
    }
    const decades = Math.log10(max / min);
    // Less than a decade has ticks as a linear axis.
    if (axis.log && decades > 0.9) {
      const all = [];
      for (let decade = Math.floor(Math.log10(min)); decade <= Math.ceil(Math.log10(max)); decade++) {
        for (const mark of [1, 2, 5]) {
          const value = +`${mark}e${decade}`;
          const labeled = mark === 1 || length / decades > 3 * gap;
          const isLine = labeled || length / decades > gap;
          if (isLine && value >= min * (1 - 1e-9) && value <= max * (1 + 1e-9)) all.push([value, labeled]);
        }
      }
      return all;
    }
    const width = step((max - min) / Math.max(2, Math.floor(length / gap)));
    const first = Math.ceil(min / width - 1e-9);
    const count = Math.floor(max / width + 1e-9) - first + 1;
    return Array.from({ length: count }, (_, index) => [+((first + index) * width).toPrecision(12), true]);
  }

  // Labels of an axis' ticks. On a linear axis all durations have one unit.
  function labels(axis, splits) {
    if (axis.unit === "names") return splits.map((_, index) => axis.names[index]);
    if (axis.unit === "percentile") return splits.map(percentile);
    if (axis.unit !== "duration") return splits.map(number);
    const unit = (ns) => SHORT.find((one) => Math.abs(ns) >= one[1] * (1 - 1e-9)) ?? SHORT[3];
    const [least, most] = [Math.abs(splits[1] - splits[0]), Math.max(...splits.map(Math.abs))];
    const common = SHORT.find((one) => least >= one[1] * (1 - 1e-9) || most >= 10 * one[1]) ?? SHORT[3];
    return splits.map((ns) => {
      const [symbol, size] = axis.log ? unit(ns) : common;
      return `${number(Math.abs(ns) / size).replace(/^/, ns < 0 ? "−" : "")} ${symbol}`;
    });
  }

  const pen = document.createElement("canvas").getContext("2d");
  function textWidth(text) {
    pen.font = FONT;
    return pen.measureText(text).width;
  }

  // Options of an axis on a side: 2 is below, 3 is left.
  function axisOptions(axis, scale, side, narrow) {
    const isBelow = side % 2 === 0;
    const size = (u) => (isBelow ? u.width : u.height) - 80;
    const all = (u, min, max) => ticks(axis, min, max, size(u), isBelow ? 86 : 40);
    const hidden = axis.unit === "names" && narrow && !axis.lanes;
    const values = (u, splits) => {
      const shown = labels(axis, splits);
      const { min, max } = u.scales[scale];
      const named = all(u, min, max);
      return hidden ? shown.map(() => "") : shown.map((text, index) => (named[index]?.[1] ? text : null));
    };
    const longest = (texts) => Math.max(0, ...(texts ?? []).filter(Boolean).map(textWidth));
    return {
      scale, side, font: FONT, labelFont: FONT, gap: 7, labelGap: 2, labelSize: 20,
      label: (narrow ? axis.title?.split(" (")[0] : axis.title) || null,
      stroke: () => css("--dim"),
      grid: { stroke: () => css("--faint"), width: 1, show: axis.unit !== "names" },
      ticks: { show: false },
      splits: (u, _, min, max) => all(u, min, max).map(([value]) => value),
      filter: (u, splits) => splits,
      values,
      // Wide enough that plots below each other begin at the same place.
      size: (u, texts) => (isBelow ? 26 : Math.max(longest(texts) + 12, hidden ? 0 : axis.title ? 60 : 80)),
    };
  }

  // ---- Data ----

  const isShown = (u, index) => u.series[index + 1].show;

  // The least and the greatest of what is shown between two values of x.
  function extremes(plot, u, from, to) {
    let [min, max] = [Infinity, -Infinity];
    const take = (value) => {
      if (value == null || (plot.y.log && value <= 0)) return;
      min = Math.min(min, value);
      max = Math.max(max, value);
    };
    plot.series.forEach((series, index) => {
      if (!isShown(u, index)) return;
      series.x.forEach((x, at) => {
        if (x + (series.width ?? 0) < from || x > to) return;
        [series.y, series.low, series.high].forEach((values) => values && take(values[at]));
      });
      if (series.tail && series.tail[0] <= to) take(series.tail[1]);
    });
    (plot.lines ?? []).filter((line) => line.axis === "y").forEach((line) => take(line.at));
    return min <= max ? [min, max] : [1, 10];
  }

  // The range of the y axis, with round ends.
  function yRange(plot, u) {
    if (plot.y.range) return plot.y.range;
    if (plot.y.unit === "names") return [0, plot.y.names.length];
    const [first, last] = u.series[0].idxs ?? [0, u.data[0].length - 1];
    let [min, max] = extremes(plot, u, u.data[0][first], u.data[0][last]);
    if (plot.y.log) {
      const below = step(1 / (min * (1 + 1e-9)));
      [min, max] = [1 / below, step(max)];
      return max > min ? [min, max] : [min, min * 10];
    }
    if (plot.y.zero) min = Math.min(min, 0);
    if (max <= min) max = min + Math.max(Math.abs(min), 1) * 0.1;
    const air = plot.y.zero ? 0 : (max - min) * 0.08;
    const width = step((max - min) / 5);
    return [Math.floor((min - air) / width) * width, Math.ceil((max + air) / width) * width];
  }

  // ---- Marks ----

  // Paints everything between the axes.
  function paint(plot, u, isRows, isNarrow) {
    const { ctx, bbox } = u;
    const ratio = uPlot.pxRatio;
    const floor = u.scales.y.min;
    const level = (y) => (plot.y.log && y <= 0 ? floor : y);
    const place = (x, y) => {
      const [across, along] = [u.valToPos(x, "x", true), u.valToPos(level(y), "y", true)];
      return isRows ? [along, across] : [across, along];
    };
    const stroke = (points, width, dash) => {
      ctx.lineWidth = width * ratio;
      ctx.setLineDash((dash ?? []).map((length) => length * ratio));
      ctx.beginPath();
      points.forEach(([x, y], index) => (index ? ctx.lineTo(x, y) : ctx.moveTo(x, y)));
      ctx.stroke();
      ctx.setLineDash([]);
    };
    const dot = ([x, y], radius, isHollow) => {
      ctx.beginPath();
      ctx.arc(x, y, radius * ratio, 0, 2 * Math.PI);
      ctx.lineWidth = 1.2 * ratio;
      const [fill, edge] = [ctx.fillStyle, ctx.strokeStyle];
      [ctx.fillStyle, ctx.strokeStyle] = isHollow ? [css("--paper"), edge] : [fill, css("--paper")];
      ctx.fill();
      ctx.stroke();
      [ctx.fillStyle, ctx.strokeStyle] = [fill, edge];
    };
    const rectangle = ([left, top], [right, bottom], least) => {
      const width = Math.max(Math.abs(right - left), least * ratio);
      const height = Math.max(Math.abs(bottom - top), least * ratio);
      ctx.fillRect(Math.min(left, right), Math.min(top, bottom), width, height);
    };
    const font = (text, [x, y], align) => {
      ctx.font = FONT.replace("12px", `${12 * ratio}px`);
      [ctx.textAlign, ctx.textBaseline] = [align, "middle"];
      ctx.fillText(text, x, y);
    };

    ctx.save();
    ctx.beginPath();
    // A dot at an edge is seen whole, at the left one unless the plot is zoomed.
    const edge = 5 * ratio;
    const left = u.scales.x.min <= u.data[0][0] ? edge : 0;
    ctx.rect(bbox.left - left, bbox.top - edge, bbox.width + left + edge, bbox.height + 2 * edge);
    ctx.clip();
    (plot.spans ?? []).filter((span) => span.lane != null).forEach((span) => {
      ctx.fillStyle = css(span.tone === "lost" ? "--bad" : "--stall");
      ctx.globalAlpha = 0.75;
      rectangle(place(span.from, span.lane + 0.2), place(span.to, span.lane + 0.8), 2);
    });
    ctx.globalAlpha = 1;
    (plot.lines ?? []).forEach((line) => {
      ctx.strokeStyle = css("--ink");
      const across = [u.scales.x.min, u.scales.x.max].map((x) => place(x, line.at));
      const along = [floor, u.scales.y.max].map((y) => place(line.at, y));
      stroke(line.axis === "y" ? across : along, 1.2);
    });
    const taken = [];
    plot.series.forEach((series, index) => {
      if (!isShown(u, index)) return;
      const color = (at) => ink(series.colors ? series.colors[at] : series.color);
      const known = [...series.x.keys()].filter((at) => series.y[at] != null);
      ctx.strokeStyle = ctx.fillStyle = color(0);
      const isFilled = series.kind === "bars" || series.kind === "band";
      if (isFilled) {
        known.forEach((at) => {
          // A band without a lower end is a mark.
          const low = series.low?.[at] ?? (series.low ? series.y[at] : floor);
          ctx.globalAlpha = series.kind === "bars" || low === series.y[at] ? 1 : 0.42;
          rectangle(place(series.x[at], low), place(series.x[at] + series.width, series.y[at]), 1.5);
        });
        ctx.globalAlpha = 1;
      }
      if (series.kind === "line" || series.kind === "steps") {
        // A gap, or a pause between two steps, lifts the pen.
        let path = [];
        const lift = () => {
          if (path.length) stroke(path, series.strong ? 2.6 : 1.6, DASHES[series.dash]);
          path = [];
        };
        series.x.forEach((x, at) => {
          if (series.y[at] == null) return lift();
          if (series.kind === "steps") path.push(place(x, series.y[at]), place(x + series.width, series.y[at]));
          else path.push(place(x, series.y[at]));
        });
        lift();
      }
      if (series.tail && known.length) {
        const [last, end] = [known[known.length - 1], place(...series.tail)];
        stroke([place(series.x[last], series.y[last]), end], 1, [1, 4]);
        dot(end, 3.5, true);
      }
      known.forEach((at) => {
        if (isFilled) return;
        ctx.strokeStyle = ctx.fillStyle = color(at);
        const center = place(series.x[at], series.y[at]);
        if (series.low && series.low[at] != null) {
          ctx.globalAlpha = isRows ? 0.65 : 1;
          stroke([place(series.x[at], series.low[at]), place(series.x[at], series.high[at])], isRows ? 3 : 1.6);
          ctx.globalAlpha = 1;
        }
        if (series.dots?.includes(at)) dot(center, isRows ? 4.5 : 3.5);
        if (series.names && !isNarrow) nameNear(series.names[at], center);
      });
    });
    if (isRows && isNarrow) {
      ctx.fillStyle = css("--ink");
      plot.x.names.forEach((name, row) => {
        const [, y] = place(row, floor);
        font([name, plot.x.notes?.[row]].filter(Boolean).join(": "), [bbox.left, y - 15 * ratio], "left");
      });
    }
    ctx.restore();
    paintNumbers();

    // Writes a dot's name to its right, or to the nearest free height.
    function nameNear(name, [x, y]) {
      const [width, height] = [textWidth(name) * ratio, 13 * ratio];
      const left = x + width + 10 * ratio > bbox.left + bbox.width ? x - width - 8 * ratio : x + 8 * ratio;
      const isFree = (top) => taken.every(([l, t, w]) => left > l + w || l > left + width || Math.abs(t - top) >= height);
      const tries = [...Array(24).keys()].map((turn) => y - height / 2 + (turn % 2 ? 1 : -1) * Math.ceil(turn / 2) * height * 0.6);
      const top = tries.find(isFree) ?? y - height / 2;
      taken.push([left, top, width]);
      font(name, [left, top], "left");
    }

    // Writes the numbers of marked spans above the plot, those that have room.
    function paintNumbers() {
      let until = -Infinity;
      ctx.save();
      ctx.fillStyle = css("--stall");
      (plot.spans ?? []).filter((span) => span.mark).forEach((span) => {
        const x = u.valToPos((span.from + span.to) / 2, "x", true);
        if (x < bbox.left || x > bbox.left + bbox.width || x < until) return;
        font(span.mark, [x, bbox.top - 8 * ratio], "center");
        until = x + (textWidth(span.mark) + 6) * ratio;
      });
      ctx.restore();
    }
  }

  // Paints spans over the whole height, behind everything else.
  function paintSpans(plot, u) {
    const { ctx, bbox } = u;
    ctx.save();
    ctx.beginPath();
    ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height);
    ctx.clip();
    ctx.fillStyle = css("--stall");
    ctx.globalAlpha = 0.28;
    (plot.spans ?? []).filter((span) => span.lane == null).forEach((span) => {
      const [left, right] = [span.from, span.to].map((x) => u.valToPos(x, "x", true));
      ctx.fillRect(left, bbox.top, Math.max(right - left, 1.5 * uPlot.pxRatio), bbox.height);
    });
    ctx.restore();
  }

  // ---- Hover ----

  // The index of a series' point under the cursor; null: none is near.
  function nearest(u, series, value) {
    const { left, top } = u.cursor;
    let [best, least] = [null, Infinity];
    series.x.forEach((x, at) => {
      if (series.y[at] == null) return;
      if (series.width) {
        if (x <= value && value < x + series.width) best = at;
        return;
      }
      if (u.scales.x.ori) {
        if (x === Math.round(value)) best = at;
        return;
      }
      const across = Math.abs(u.valToPos(x, "x") - left);
      const away = series.kind === "points" ? Math.abs(u.valToPos(series.y[at], "y") - top) : 0;
      const distance = Math.hypot(across, away);
      if (distance < least && distance < 30) [best, least] = [at, distance];
    });
    return best;
  }

  // What the legend shows of a point: its own text, or its value and interval.
  function valueText(plot, series, at) {
    const format = VALUES[plot.y.unit] ?? VALUES.number;
    const name = series.names ? `${series.names[at]} ` : "";
    if (series.labels) return name + series.labels[at];
    const [low, high] = [series.low?.[at], series.high?.[at]];
    const interval = low != null && high != null && high > low ? ` (${format(low)} to ${format(high)})` : "";
    return name + format(series.y[at]) + interval;
  }

  // Names the marked spans under the cursor.
  function spansText(plot, u) {
    const { left, top } = u.cursor;
    if (left == null || left < 0) return "";
    const [from, to] = [left - 3, left + 3].map((x) => u.posToVal(x, "x"));
    const lane = plot.y.unit === "names" ? Math.floor(u.posToVal(top, "y")) : null;
    const isUnder = (span) => span.to >= from && span.from <= to && (span.lane ?? null) === lane;
    return plot.spans.filter(isUnder).map((span) => span.label).slice(0, 4).join("; ");
  }

  // ---- Figures ----

  function build(figure) {
    const plot = JSON.parse(figure.querySelector("script").textContent);
    // What is empty is left out of the data.
    plot.series ??= [];
    plot.series.forEach((one) => Object.assign(one, { x: one.x ?? [], y: one.y ?? [] }));
    const box = figure.querySelector("[role=img]");
    const isRows = plot.x.unit === "names";
    plot.y.lanes = plot.y.unit === "names";
    const tables = plot.series.map((series) => [series.x, series.y]);
    if (plot.x.range) tables.push([plot.x.range]);
    const data = uPlot.join(tables);
    const places = new Map(data[0].map((x, index) => [x, index]));
    const near = plot.series.map(() => null);
    const [first, last] = [data[0][0], data[0][data[0].length - 1]];
    const air = (last - first) * 0.03 || 1;
    const whole = plot.x.range ?? (isRows
      ? [-0.6, plot.x.names.length - 0.4]
      : plot.x.log ? [first / 1.15, last * 1.15] : [plot.x.zero ? Math.min(0, first) : first - air, last + air]);
    const width = () => Math.max(box.clientWidth, 200);
    let chart;
    let narrow;

    const height = () => (isRows ? plot.x.names.length * (narrow ? 40 : 26) + 56 : plot.height);
    const series = plot.series.map((one, index) => ({
      label: one.name,
      stroke: () => ink(one.color),
      paths: () => null,
      points: { show: false },
      value: (u, y, _, at) => (at == null ? one.note ?? "" : valueText(plot, one, near[index])),
    }));
    const options = () => ({
      width: width(),
      height: height(),
      padding: [plot.spans?.some((span) => span.mark) ? 18 : 8, isRows && !narrow ? 4 : 22, null, null],
      scales: {
        x: {
          time: false, distr: plot.x.log ? 3 : 1, ori: isRows ? 1 : 0, dir: isRows ? -1 : 1,
          range: (u, min, max) => (min == null || (min <= first && max >= last) ? whole : [min, max]),
        },
        y: {
          distr: plot.y.log ? 3 : 1, ori: isRows ? 0 : 1, dir: plot.y.lanes ? -1 : 1,
          range: (u) => yRange(plot, u),
        },
      },
      axes: [
        axisOptions(plot.x, "x", isRows ? 3 : 2, narrow),
        axisOptions(plot.y, "y", isRows ? 2 : 3, narrow),
        ...(isRows && plot.x.notes && !narrow
          ? [{ ...axisOptions({ ...plot.x, names: plot.x.notes, title: "" }, "x", 1, false), stroke: () => css("--dim") }]
          : []),
      ],
      series: [
        {
          label: isRows ? "of" : "at",
          value: (u, x, _, index) => {
            if (index == null) return "";
            return isRows ? plot.x.names[x] ?? "" : (VALUES[plot.x.unit] ?? VALUES.number)(u.posToVal(u.cursor.left, "x"));
          },
        },
        ...series,
      ],
      cursor: {
        y: !isRows && plot.series.some((one) => one.kind === "points"),
        points: { show: false },
        drag: { x: true, y: false },
        sync: plot.group ? { key: plot.group, scales: ["x", null] } : undefined,
        dataIdx: (u, index, closest, value) => {
          if (index === 0) return closest;
          const one = plot.series[index - 1];
          const at = nearest(u, one, value);
          near[index - 1] = at;
          return at == null ? null : places.get(one.x[at]);
        },
      },
      legend: {
        show: plot.series.length > 0,
        markers: {
          width: 3,
          stroke: (u, index) => `var(--${plot.series[index - 1].color ? "c" + plot.series[index - 1].color : "ink"})`,
          dash: (u, index) => BORDERS[plot.series[index - 1].dash] ?? "solid",
          fill: () => "none",
        },
      },
      hooks: {
        drawClear: [(u) => paintSpans(plot, u)],
        draw: [(u) => paint(plot, u, isRows, narrow)],
        setCursor: [(u) => {
          if (readout) readout.textContent = spansText(plot, u);
        }],
      },
    });

    let readout;
    if (plot.spans?.length) {
      readout = document.createElement("p");
      readout.className = "note readout";
      box.after(readout);
    }
    // Draws in a width; a plot of rows is built again where its names change their place.
    function resize(wide) {
      const wasNarrow = narrow;
      narrow = wide < NARROW;
      if (!chart || (isRows && wasNarrow !== narrow)) {
        chart?.destroy();
        box.textContent = "";
        chart = new uPlot({ ...options(), width: wide, height: height() }, data, box);
        if (isRows) chart.root.classList.add("rows");
      } else {
        chart.setSize({ width: wide, height: height() });
      }
    }
    resize(width());
    const entry = { redraw: () => chart.redraw(false), resize, width };
    drawn.push(entry);
    new ResizeObserver(() => {
      if (!root.classList.contains("light") && chart.width !== width()) resize(width());
    }).observe(box);
  }

  document.querySelectorAll("figure.plot").forEach(build);
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => drawn.forEach((one) => one.redraw()));
  // On paper plots are light and as wide as the page.
  addEventListener("beforeprint", () => {
    root.classList.add("light");
    drawn.forEach((one) => one.resize(Math.min(one.width(), PAPER)));
    drawn.forEach((one) => one.redraw());
  });
  addEventListener("afterprint", () => {
    root.classList.remove("light");
    drawn.forEach((one) => one.resize(one.width()));
    drawn.forEach((one) => one.redraw());
  });
})();
