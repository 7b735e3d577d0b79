"use strict";
(() => {
  const data = JSON.parse(document.getElementById("data").textContent);
  const readout = document.getElementById("readout");
  const LEFT = 58, RIGHT = 14, TOP = 24, BOTTOM = 26;

  // ---- the axis: u is λ on the scale that is drawn -----------------------------------------
  const toAxis = (v) => (data.logarithmic ? Math.log10(v) : v);
  const fromAxis = (u) => (data.logarithmic ? Math.pow(10, u) : u);
  // Breakpoints from small to large; a record holds from its breakpoint to the next of the path.
  const order = data.value.map((_, k) => k);
  const falls = data.value[0] > data.value[data.value.length - 1];
  if (falls) order.reverse();
  const axis = order.map((k) => toAxis(data.value[k]));
  const first = axis[0], last = axis[axis.length - 1];
  const width = Math.max(last - first, 1e-9);
  const whole = [first - 0.01 * width, last + 0.01 * width];
  let view = whole.slice();
  let chosen = -1; // place in `order` of the breakpoint under the pointer

  const columnSteps = (name) => {
    const edges = [], values = [];
    for (let i = 0; i + 1 < order.length; i++) {
      edges.push(axis[i]);
      values.push(data[name][order[falls ? i + 1 : i]]);
    }
    edges.push(last);
    return { edges, values };
  };

  // ---- what is drawn: lines of points (x, y), in panels ------------------------------------
  const stairs = (edges, values) => {
    const points = [];
    for (let i = 0; i < values.length; i++) {
      points.push([edges[i], values[i]], [edges[i + 1], values[i]]);
    }
    return points;
  };
  const panels = [];
  const addPanel = (title, label, lines, top) => {
    if (lines.length) panels.push({ title, label, lines, top });
  };
  if (data.coefficients) {
    const at = data.coefficients.at.map(toAxis);
    addPanel("Coefficients", "coefficient / bound", data.coefficients.lines.map((line, r) => ({
      name: data.coefficients.names[data.coefficients.positive[r] ? 0 : 1],
      colour: data.coefficients.positive[r] ? "--orange" : "--blue",
      thin: true,
      points: line.map((v, k) => [at[k], v]),
    })), 1);
  }
  const sets = [
    ["n_margin", "margin", "--green"],
    ["n_error", "error (at the cost bound)", "--orange"],
    ["n_correct", "correct (coefficient 0)", "--blue"],
  ];
  addPanel("Sizes of the sets", "rows", sets.map(([key, name, colour]) => {
    const steps = columnSteps(key);
    return { name, colour, points: stairs(steps.edges, steps.values) };
  }));
  const colours = { training: "--ink", validation: "--purple" };
  addPanel("Errors", "error", data.curves.map((curve) => ({
    name: curve.name + (curve.error && curve.error[0] !== null ? " ± standard error" : ""),
    colour: colours[curve.name] || "--blue",
    points: stairs(curve.edges.map(toAxis), curve.values),
    band: curve.error && curve.error[0] !== null ? stairs(curve.edges.map(toAxis), curve.error) : null,
  })));

  // ---- elements ----------------------------------------------------------------------------
  const place = document.getElementById("panels");
  for (const panel of panels) {
    const title = document.createElement("h2");
    title.textContent = panel.title;
    const legend = document.createElement("ul");
    legend.className = "legend";
    const seen = new Set();
    for (const line of panel.lines) {
      if (seen.has(line.name)) continue;
      seen.add(line.name);
      const item = document.createElement("li");
      const swatch = document.createElement("i");
      swatch.style.background = `var(${line.colour})`;
      item.append(swatch, line.name);
      legend.append(item);
    }
    panel.canvas = document.createElement("canvas");
    panel.canvas.tabIndex = 0;
    panel.canvas.setAttribute("role", "img");
    panel.canvas.setAttribute("aria-label",
      `${panel.title} against ${data.parameter}: ${[...seen].join(", ")}. ` +
      "Arrow keys move from breakpoint to breakpoint; the values are read below.");
    place.append(title, legend, panel.canvas);
    const values = panel.lines.flatMap((line) =>
      line.points.map((p, k) => (p[1] === null ? null : p[1] + (line.band ? line.band[k][1] : 0))));
    let most = panel.top || 0;
    for (const v of values) if (v !== null && v > most) most = v;
    panel.most = most > 0 ? 1.05 * most : 1;
  }

  // ---- drawing -----------------------------------------------------------------------------
  const short = (v) => {
    if (v === null || v === undefined) return "–";
    const size = Math.abs(v);
    if (v !== 0 && (size >= 1e5 || size < 1e-3)) return v.toExponential(2).replace(/\.?0+e/, "e");
    return String(parseFloat(v.toPrecision(5)));
  };
  const niceStep = (range, count) => {
    const raw = range / count, power = Math.pow(10, Math.floor(Math.log10(raw)));
    for (const factor of [1, 2, 5, 10]) if (raw <= factor * power) return factor * power;
    return 10 * power;
  };
  const ticks = (low, high) => {
    const found = [];
    if (data.logarithmic && high - low > 1.5) {
      const step = Math.max(1, Math.ceil((high - low) / 8));
      for (let d = Math.ceil(low); d <= high; d += step) found.push(d);
      return found;
    }
    const a = fromAxis(low), b = fromAxis(high), step = niceStep(b - a, 7);
    for (let v = Math.ceil(a / step) * step; v <= b; v += step) {
      if (!data.logarithmic || v > 0) found.push(toAxis(v));
    }
    return found;
  };
  const colourOf = (name) => getComputedStyle(document.documentElement).getPropertyValue(name);

  const draw = (panel, number) => {
    const canvas = panel.canvas, ratio = window.devicePixelRatio || 1;
    const W = canvas.clientWidth, H = canvas.clientHeight;
    if (!W || !H) return;
    canvas.width = Math.round(W * ratio);
    canvas.height = Math.round(H * ratio);
    const g = canvas.getContext("2d");
    g.scale(ratio, ratio);
    g.font = "12px system-ui, sans-serif";
    const x = (u) => LEFT + ((u - view[0]) / (view[1] - view[0])) * (W - LEFT - RIGHT);
    const y = (v) => H - BOTTOM - (v / panel.most) * (H - TOP - BOTTOM);
    g.strokeStyle = colourOf("--faint");
    g.fillStyle = colourOf("--soft");
    g.lineWidth = 1;
    g.textAlign = "center";
    for (const u of ticks(view[0], view[1])) {
      g.beginPath(); g.moveTo(x(u), TOP); g.lineTo(x(u), H - BOTTOM); g.stroke();
      g.fillText(short(fromAxis(u)), x(u), H - BOTTOM + 14);
      if (number === 0 && data.parameter === "lambda" && fromAxis(u) > 0) {
        g.fillText(short(1 / fromAxis(u)), x(u), TOP - 8);
      }
    }
    g.fillText(data.symbol, LEFT - 20, H - BOTTOM + 14);
    if (number === 0 && data.parameter === "lambda") g.fillText("C", LEFT - 20, TOP - 8);
    g.textAlign = "right";
    const step = niceStep(panel.most, 4);
    for (let v = 0; v <= panel.most; v += step) {
      g.beginPath(); g.moveTo(LEFT, y(v)); g.lineTo(W - RIGHT, y(v)); g.stroke();
      g.fillText(short(v), LEFT - 6, y(v) + 4);
    }
    g.save();
    g.beginPath(); g.rect(LEFT, TOP - 2, W - LEFT - RIGHT, H - TOP - BOTTOM + 4); g.clip();
    for (const line of panel.lines) {
      g.strokeStyle = g.fillStyle = colourOf(line.colour);
      if (line.band) {
        g.globalAlpha = 0.2;
        g.beginPath();
        line.points.forEach((p, k) => g.lineTo(x(p[0]), y(p[1] + line.band[k][1])));
        for (let k = line.points.length - 1; k >= 0; k--) {
          g.lineTo(x(line.points[k][0]), y(Math.max(0, line.points[k][1] - line.band[k][1])));
        }
        g.fill();
      }
      g.globalAlpha = line.thin ? 0.6 : 1;
      g.lineWidth = line.thin ? 0.9 : 1.6;
      g.beginPath();
      let pen = false;
      for (const [u, v] of line.points) {
        if (v === null) { pen = false; continue; }
        if (pen) g.lineTo(x(u), y(v)); else g.moveTo(x(u), y(v));
        pen = true;
      }
      g.stroke();
    }
    g.globalAlpha = 1;
    g.strokeStyle = colourOf("--ink");
    g.lineWidth = 1;
    const upright = (u, dash) => {
      g.setLineDash(dash);
      g.beginPath(); g.moveTo(x(u), TOP); g.lineTo(x(u), H - BOTTOM); g.stroke();
    };
    if (data.choice) upright(toAxis(data.choice.lambda), [6, 4]);
    if (chosen >= 0) upright(axis[chosen], []);
    g.restore();
  };
  let waiting = false;
  const redraw = () => {
    if (waiting) return;
    waiting = true;
    requestAnimationFrame(() => { waiting = false; panels.forEach(draw); });
  };

  // ---- what is under the pointer -----------------------------------------------------------
  const nearest = (u) => {
    let low = 0, high = axis.length - 1;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (axis[middle] <= u) low = middle; else high = middle;
    }
    return u - axis[low] <= axis[high] - u ? low : high;
  };
  const show = (at) => {
    chosen = at;
    const k = order[at], many = data.n_items[k] - data.items[k].length;
    const facts = [["step", data.step[k]], [data.symbol, short(data.value[k])]];
    if (data.parameter === "lambda" && data.value[k] > 0) facts.push(["C", short(1 / data.value[k])]);
    facts.push(["event", data.words[data.event[k]] || "–"]);
    facts.push(["rows", (data.items[k].join(", ") || "–") + (many > 0 ? ` and ${many} more` : "")]);
    for (const [key, name] of [["n_margin", "margin"], ["n_error", "error"], ["n_correct", "correct"],
      ["train_error", "training error"], ["valid_error", "validation error"], ["bias", "bias"],
      ["objective", "objective"], ["kkt", "KKT residual"]]) {
      if (data[key][k] !== null) facts.push([name, short(data[key][k])]);
    }
    readout.replaceChildren(...facts.map(([name, value]) => {
      const item = document.createElement("span"), label = document.createElement("b");
      label.textContent = name + " ";
      item.append(label, String(value));
      return item;
    }));
    redraw();
  };
  const keepInside = (a, b) => {
    const span = Math.min(b - a, whole[1] - whole[0]);
    const begin = Math.min(Math.max(a, whole[0]), whole[1] - span);
    view = [begin, begin + span];
    redraw();
  };
  const zoom = (centre, factor) => {
    const span = Math.max((view[1] - view[0]) * factor, 1e-7 * (whole[1] - whole[0]));
    const share = (centre - view[0]) / (view[1] - view[0]);
    keepInside(centre - share * span, centre + (1 - share) * span);
  };

  for (const panel of panels) {
    const canvas = panel.canvas;
    const axisAt = (event) => {
      const box = canvas.getBoundingClientRect();
      const share = (event.clientX - box.left - LEFT) / (box.width - LEFT - RIGHT);
      return view[0] + share * (view[1] - view[0]);
    };
    let held = null;
    canvas.addEventListener("pointerdown", (event) => {
      held = axisAt(event);
      canvas.setPointerCapture(event.pointerId);
    });
    canvas.addEventListener("pointerup", () => { held = null; });
    canvas.addEventListener("pointercancel", () => { held = null; });
    canvas.addEventListener("pointermove", (event) => {
      const u = axisAt(event);
      if (held === null) { show(nearest(u)); return; }
      keepInside(view[0] + held - u, view[1] + held - u);
    });
    canvas.addEventListener("wheel", (event) => {
      event.preventDefault();
      zoom(axisAt(event), Math.exp(0.0015 * event.deltaY));
    }, { passive: false });
    canvas.addEventListener("dblclick", () => keepInside(whole[0], whole[1]));
    canvas.addEventListener("keydown", (event) => {
      const go = { ArrowLeft: -1, ArrowRight: 1, PageUp: -20, PageDown: 20 }[event.key];
      if (go) show(Math.min(Math.max((chosen < 0 ? axis.length - 1 : chosen) + go, 0), axis.length - 1));
      else if (event.key === "Home") show(0);
      else if (event.key === "End") show(axis.length - 1);
      else if (event.key === "+" || event.key === "=") zoom(chosen < 0 ? (view[0] + view[1]) / 2 : axis[chosen], 0.7);
      else if (event.key === "-") zoom((view[0] + view[1]) / 2, 1.4);
      else if (event.key === "0") keepInside(whole[0], whole[1]);
      else return;
      event.preventDefault();
      if (chosen >= 0 && (axis[chosen] < view[0] || axis[chosen] > view[1])) {
        const half = (view[1] - view[0]) / 2;
        keepInside(axis[chosen] - half, axis[chosen] + half);
      }
    });
  }
  window.addEventListener("resize", redraw);
  window.matchMedia("(prefers-color-scheme: dark)").addEventListener("change", redraw);
  show(data.choice ? nearest(toAxis(data.choice.lambda)) : axis.length - 1);
})();
