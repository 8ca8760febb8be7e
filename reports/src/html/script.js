// What only a run's page adds: a readout of the moment under the pointer, and a closer look at a stretch of the
// timeline.
(() => {
  const page = document;
  const { all, make, button } = tools;
  const lanes = page.querySelector(".lanes");
  if (!lanes) return;
  const end = parseFloat(lanes.dataset.end);
  if (!(end > 0)) return;

  // What the page says about each stretch of time, read once. Titles become part of the readout, so that the
  // browser does not show them a second time.
  const value = (element, name) => parseFloat(element.style.getPropertyValue(name));
  const take = (element) => {
    const title = element.title;
    element.removeAttribute("title");
    return title;
  };
  const faults = all(".faultlane .label").map((element) => ({
    element, from: value(element, "--a"), to: value(element, "--u"),
    id: element.querySelector("b").textContent, text: take(element),
  }));
  const members = all(".lane.member").map((lane) => ({
    name: lane.querySelector(".name").textContent,
    spans: all(".rib", lane).map((element) => ({
      from: value(element, "--a"), to: value(element, "--b"), text: take(element),
    })),
  })).reverse();
  const outages = all(".outages .out").map((element) => ({
    from: value(element, "--a"), to: value(element, "--b"), text: take(element),
  }));
  const marks = all(".operations .mark").map((element) => ({
    at: value(element, "--a"), top: parseFloat(element.style.top), text: take(element),
  }));
  const bins = lanes.querySelector(".bins");
  const series = (name) => (bins ? bins.dataset[name].split(" ") : []);
  const [answered, medians, slowest] = [series("ok"), series("p50"), series("max")];
  const width = bins ? parseFloat(bins.dataset.bin) : 1;

  // The dots of the operations lane, by their column: the drawing's own path, which is made of moves and of lines
  // straight down.
  const operations = lanes.querySelector("svg.ops");
  const scale = lanes.querySelector(".operations .plot");
  let dots = null;
  const columns = operations ? operations.viewBox.baseVal.width : 1;
  const rows = operations ? operations.viewBox.baseVal.height : 1;
  const read = () => {
    dots = new Map();
    for (const path of all("path", operations)) {
      const what = path.classList.contains("w") ? "write" : "read";
      let [x, y] = [0, 0];
      for (const [, step, rest] of path.getAttribute("d").matchAll(/([Mmhv])([^Mmhv]*)/g)) {
        const [first, second] = (rest.match(/-?\d+/g) || []).map(Number);
        if (step === "M") { [x, y] = [first, second]; }
        if (step === "m") { x += first; y += second; }
        if (step === "h" || step === "v") {
          const to = step === "v" ? y + first : y;
          if (!dots.has(x)) dots.set(x, []);
          dots.get(x).push({ what, from: y, to });
          y = to;
        }
      }
    }
  };
  const nearest = (moment, offset, reach) => {
    if (!operations || !operations.isConnected) return null;
    if (!dots) read();
    const box = operations.getBoundingClientRect();
    const row = (offset - (box.top - lanes.getBoundingClientRect().top)) / box.height * rows;
    const column = moment / end * columns;
    const perColumn = box.width / (span / end * columns);
    const perRow = box.height / rows;
    let best = null;
    const far = Math.ceil(reach / perColumn);
    for (let x = Math.floor(column) - far; x <= Math.ceil(column) + far; x += 1) {
      for (const dot of dots.get(x) || []) {
        const y = Math.min(Math.max(row, dot.from), dot.to);
        const distance = Math.hypot((x - column) * perColumn, (y - row) * perRow);
        if (distance <= reach && (!best || distance < best.distance)) best = { distance, x, y, what: dot.what };
      }
    }
    return best;
  };

  // The state: the first moment shown, and how long a stretch.
  let [start, span] = [0, end];
  const bands = lanes.querySelector(".bands");
  const axis = lanes.querySelector(".axis");
  const whole = { ticks: all(".tick", axis), grid: all(".grid", bands) };
  const rates = lanes.querySelector("svg.rates");
  const views = [operations, rates, lanes.querySelector("svg.bands-of")].filter(Boolean)
    .map((svg) => ({ svg, width: svg.viewBox.baseVal.width, height: svg.viewBox.baseVal.height }));
  const closest = Math.max(end / 5000, 0.002);

  const cursor = make("i", "cursor");
  const chosen = make("i", "chosen");
  const tip = make("div", "tip");
  cursor.hidden = chosen.hidden = tip.hidden = true;
  lanes.append(cursor, chosen, tip);
  const range = make("span", "range");
  range.setAttribute("role", "status");
  const back = button("whole", "Whole run", () => zoom(0, end));
  back.hidden = true;
  const bar = make("div", "zoombar", back, range);
  lanes.before(bar);
  lanes.tabIndex = 0;
  lanes.setAttribute("role", "group");
  lanes.setAttribute("aria-label",
    "Timeline. Arrow keys move the moment, plus and minus look closer and wider, Escape shows the whole run.");

  const decimals = (step) => Math.max(0, -Math.floor(Math.log10(step) + 1e-9));
  const shown = (moment) => moment.toFixed(Math.max(1, decimals(span / 1000)));

  function ticks() {
    const most = Math.max(3, Math.floor(bands.clientWidth / 80));
    const power = 10 ** Math.floor(Math.log10(span / most));
    const step = [1, 2, 5, 10].map((factor) => factor * power).find((size) => span / size <= most) || power * 10;
    const out = [];
    for (let n = Math.ceil(start / step - 1e-9); n * step <= start + span * (1 + 1e-9); n += 1) {
      const left = `${(n * step - start) / span * 100}%`;
      const tick = make("span", "tick", (n * step).toFixed(decimals(step)));
      const line = make("i", "grid");
      tick.style.left = line.style.left = left;
      tick.classList.toggle("edge", parseFloat(left) > 98);
      out.push({ tick, line });
    }
    return out;
  }

  function zoom(from, to) {
    const length = Math.min(end, Math.max(closest, to - from));
    start = Math.max(0, Math.min(end - length, from));
    span = length;
    const full = span >= end * 0.999;
    if (full) [start, span] = [0, end];
    lanes.style.setProperty("--t0", start);
    lanes.style.setProperty("--dt", span);
    lanes.classList.toggle("zoomed", !full);
    for (const view of views) {
      view.svg.setAttribute("viewBox",
        `${start / end * view.width} 0 ${span / end * view.width} ${view.height}`);
    }
    for (const old of [...all(".tick", axis), ...all(".grid", bands)]) old.remove();
    if (full) {
      axis.prepend(...whole.ticks);
      bands.prepend(...whole.grid);
    } else {
      const made = ticks();
      axis.prepend(...made.map((pair) => pair.tick));
      bands.prepend(...made.map((pair) => pair.line));
    }
    // A button that vanishes under the focus would lose the reader's place.
    if (full && page.activeElement === back) lanes.focus({ preventScroll: true });
    back.hidden = full;
    range.textContent = full
      ? "Drag to look closer, click a fault to fit it, double-click for the whole run."
      : `${shown(start)} to ${shown(start + span)} s`;
  }

  const fit = (fault) => {
    const room = Math.max((fault.to - fault.from) * 0.15, end / 200);
    zoom(fault.from - room, fault.to + room);
  };

  // Where the pointer is: px from the left of the axis, and the moment.
  const place = (event) => {
    const box = bands.getBoundingClientRect();
    const x = event.clientX - box.left;
    return { x, width: box.width, moment: start + x / box.width * span };
  };
  const touches = (item, moment) => item.from <= moment && moment <= item.to;

  // The readout of a moment; `top` is px from the top of the lanes, none with the keyboard.
  function readout(moment, top) {
    const lines = [];
    const line = (strong, quiet) => {
      const made = make("p", "");
      if (strong) made.append(make("b", "", strong));
      if (strong && quiet) made.append(" ");
      if (quiet) made.append(make("span", "quiet", quiet));
      lines.push(made);
    };
    line(`${moment.toFixed(3)} s`, "");
    for (const fault of faults.filter((item) => touches(item, moment)).slice(0, 4)) line(fault.id, fault.text);
    const roles = new Map();
    for (const member of members) {
      const now = member.spans.find((item) => item.from <= moment && moment < item.to);
      if (!now) continue;
      const what = now.text.replace(/, [\d.,]+ to [\d.,]+ s$/, "");
      if (what.startsWith("leading")) line(member.name, what);
      else roles.set(what, [...(roles.get(what) || []), member.name]);
    }
    for (const [what, names] of roles) line(names.join(" "), what);
    for (const outage of outages.filter((item) => touches(item, moment))) line("no write acknowledged", outage.text);
    const bin = Math.floor(moment / width);
    if (answered[bin] !== undefined) {
      const slow = medians[bin] === "-" ? "" : `, p50 ${medians[bin]} ms, max ${slowest[bin]} ms`;
      line(`${answered[bin]} operations/s`, `answered${slow}`);
    }
    if (top !== undefined && scale) {
      const inLane = top - (scale.getBoundingClientRect().top - lanes.getBoundingClientRect().top);
      const perSecond = bands.clientWidth / span;
      const near = marks
        .map((mark) => ({ mark, far: Math.hypot((mark.at - moment) * perSecond, mark.top - inLane) }))
        .filter((found) => found.far <= 9)
        .sort((a, b) => a.far - b.far)[0];
      if (near) {
        line("", near.mark.text);
      } else {
        const dot = nearest(moment, top, 7);
        if (dot) {
          const [low, high] = [parseFloat(scale.dataset.low), parseFloat(scale.dataset.high)];
          const took = high / (high / low) ** (Math.min(dot.y + 0.5, rows) / rows);
          line(`${dot.what} ok`, `due ${(dot.x / columns * end).toFixed(3)} s, about ${took.toPrecision(2)} ms`
            .replace(/about (\d\.?\d*)e\+(\d+)/, (_, m, e) => `about ${Math.round(m * 10 ** e)}`));
        }
      }
    }
    return lines;
  }

  function show(moment, top) {
    const left = bands.offsetLeft + (moment - start) / span * bands.clientWidth;
    cursor.style.left = `${left}px`;
    tip.replaceChildren(...readout(moment, top));
    cursor.hidden = tip.hidden = false;
    const room = lanes.clientWidth;
    const size = tip.offsetWidth;
    const x = left + 14 + size <= room ? left + 14 : left - 14 - size;
    tip.style.left = `${Math.max(0, Math.min(x, room - size))}px`;
    const below = (top === undefined ? 0 : top) + 14;
    tip.style.top = `${Math.max(0, Math.min(below, lanes.clientHeight - tip.offsetHeight))}px`;
  }
  const hide = () => { cursor.hidden = tip.hidden = true; };

  let held = null;
  let key = null;
  lanes.addEventListener("pointerdown", (event) => {
    const at = place(event);
    if (event.button !== 0 || at.x < 0 || at.x > at.width) return;
    held = at;
    lanes.setPointerCapture(event.pointerId);
  });
  lanes.addEventListener("pointermove", (event) => {
    const at = place(event);
    // Released where no one told: outside of the window.
    if (held && event.buttons === 0) release();
    if (held) {
      const from = Math.max(0, Math.min(held.x, at.x));
      const to = Math.min(at.width, Math.max(held.x, at.x));
      chosen.hidden = to - from < 4;
      chosen.style.left = `${bands.offsetLeft + from}px`;
      chosen.style.width = `${to - from}px`;
    }
    if (at.x < 0 || at.x > at.width) { hide(); return; }
    tip.removeAttribute("aria-live");
    show(at.moment, event.clientY - lanes.getBoundingClientRect().top);
  });
  lanes.addEventListener("pointerup", (event) => {
    if (!held) return;
    const at = place(event);
    const [a, b] = [held, at];
    held = null;
    chosen.hidden = true;
    if (Math.abs(b.x - a.x) > 6) {
      zoom(Math.min(a.moment, b.moment), Math.max(a.moment, b.moment));
      return;
    }
    const box = lanes.querySelector(".faultlane").getBoundingClientRect();
    if (event.clientY > box.bottom) return;
    // Of the faults under the pointer, the one whose row it is in.
    const hit = faults.filter((fault) => touches(fault, at.moment)).find((fault) => {
      const row = fault.element.getBoundingClientRect();
      return event.clientY >= row.top && event.clientY <= row.bottom;
    });
    if (hit) fit(hit);
  });
  const release = () => { held = null; chosen.hidden = true; };
  lanes.addEventListener("pointercancel", () => { release(); hide(); });
  lanes.addEventListener("pointerleave", () => { if (!held) hide(); });
  lanes.addEventListener("dblclick", () => zoom(0, end));
  lanes.addEventListener("blur", () => { key = null; hide(); });
  lanes.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "Escape" || event.key === "0") {
      if (held) release(); else { zoom(0, end); hide(); key = null; }
    } else if (["ArrowLeft", "ArrowRight", "+", "=", "-"].includes(event.key)) {
      if (key === null || key < start || key > start + span) key = start + span / 2;
      const by = { ArrowLeft: -1, ArrowRight: 1 }[event.key];
      if (by) {
        key = Math.max(0, Math.min(end, key + by * span / (event.shiftKey ? 10 : 100)));
        if (key < start) zoom(key, key + span);
        if (key > start + span) zoom(key - span, key);
      } else {
        const size = event.key === "-" ? span * 2 : span / 2;
        zoom(key - (key - start) / span * size, key - (key - start) / span * size + size);
      }
      tip.setAttribute("aria-live", "polite");
      show(Math.max(start, Math.min(start + span, key)));
    } else {
      return;
    }
    event.preventDefault();
  });
  // A link to a fault from a table shows it in the timeline.
  for (const link of all("a[data-fault]")) {
    link.addEventListener("click", () => {
      const fault = faults.find((item) => item.id === link.dataset.fault);
      if (fault) fit(fault);
    });
  }
  zoom(0, end);
})();
