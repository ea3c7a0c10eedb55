// Plots over time. Each has a caption with the value of every line, at the cursor or else
// the last one, so that nothing is told by colour alone; arrow keys move the cursor. To a
// screen reader the title is the name of the picture, and the values describe it; a value that
// somebody asks for by a key becomes part of the name, because changes of that are read out.
"use strict";

// Lines that share a colour differ in their dashes, and neighbours in both.
const COLOURS = 8;
const DASHES = [[], [8, 4], [2, 3], [10, 3, 2, 3]];

function colourOf(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

// The look of the line of this number: names of colours, since those follow the theme.
function look(number) {
  const dash = DASHES[(number + Math.floor(number / COLOURS)) % DASHES.length];
  return { colour: `--line-${number % COLOURS}`, dash };
}

// The time of day, with seconds where it is not a whole minute.
function clock(seconds) {
  const options = { hour: "2-digit", minute: "2-digit", hourCycle: "h23" };
  if (Math.floor(seconds) % 60) options.second = "2-digit";
  return new Date(seconds * 1000).toLocaleTimeString([], options);
}

// Without zeros that say nothing: 7.50 as 7.5.
function brief(text) {
  return text.replace(/(\.\d*?)0+(?= )/, "$1").replace(/\.(?= )/, "");
}

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

// A short piece of a line, as it looks in the plot.
function swatch({ colour, dash }) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  svg.setAttribute("class", "swatch");
  svg.setAttribute("viewBox", "0 0 26 10");
  svg.setAttribute("aria-hidden", "true");
  const line = document.createElementNS(space, "line");
  for (const [key, value] of Object.entries({ x1: 0, x2: 26, y1: 5, y2: 5, "stroke-width": 3, "stroke-dasharray": dash.join(" ") })) {
    line.setAttribute(key, value);
  }
  // A property, which the policy permits, and not an attribute.
  line.style.stroke = `var(${colour})`;
  svg.append(line);
  return svg;
}

let made = 0;

class Plot {
  // `lines` have a label and a look; `text` says a value with its unit, `least` is where
  // the scale ends at least, and `steps` are those between its marks, if not any will do.
  constructor(parent, { title, lines, text, least, steps, height = 150 }) {
    Object.assign(this, { title, lines, text, least, steps, height, data: [[]], range: [0, 1], most: null });
    this.values = lines.map(() => element("span"));
    this.at = element("li", { class: "at" });
    const items = lines.map((line, number) => element("li", {}, swatch(line.look), `${line.label} `, this.values[number]));
    const id = `plot-${made++}`;
    this.canvas = element("div", { class: "canvas", tabindex: "0", role: "img", "aria-label": title, "aria-describedby": id });
    this.figure = element("figure", {}, element("figcaption", {}, element("b", {}, title), element("ul", { id }, ...items, this.at)), this.canvas);
    parent.append(this.figure);
    this.canvas.addEventListener("keydown", (event) => this.key(event));
    this.canvas.addEventListener("blur", () => {
      this.plot?.setCursor({ left: -10, top: -10 });
      this.canvas.setAttribute("aria-label", title);
    });
    this.build();
    new ResizeObserver(() => this.plot.setSize(this.size())).observe(this.canvas);
  }

  size() {
    return { width: Math.max(this.canvas.clientWidth, 100), height: this.height };
  }

  // Anew with the colours of the theme.
  build() {
    this.plot?.destroy();
    const [ink, grid] = [colourOf("--quiet"), colourOf("--grid")];
    const axis = { stroke: ink, grid: { stroke: grid, width: 1 }, ticks: { stroke: grid, width: 1, size: 4 }, font: "12px system-ui, sans-serif" };
    const series = this.lines.map(({ label, look, fill }) => {
      const stroke = colourOf(look.colour);
      return { label, stroke, width: 2, dash: look.dash, fill: fill ? `${stroke}33` : undefined, points: { show: false } };
    });
    const options = {
      ...this.size(),
      legend: { show: false },
      cursor: { y: false, points: { size: 7 }, drag: { x: false, y: false } },
      scales: { x: { range: () => this.range }, y: { range: () => [0, this.top()] } },
      axes: [
        { ...axis, size: 26, space: 70, values: (_, splits) => splits.map(clock) },
        { ...axis, size: 70, space: 28, incrs: this.steps, values: (_, splits) => splits.map((value) => (value ? brief(this.text(value)) : "0")) },
      ],
      series: [{}, ...series],
      hooks: { setCursor: [() => this.tell()] },
    };
    this.plot = new uPlot(options, this.data, this.canvas);
  }

  top() {
    if (this.most !== null) return this.most;
    return Math.max(this.least, this.highest() * 1.08);
  }

  highest() {
    return this.data.slice(1).flat().reduce((most, value) => (value > most ? value : most), 0);
  }

  // Shows columns, the first of them times, up to the end of the range.
  show(data, range, most = null) {
    Object.assign(this, { data, range, most });
    this.plot.setData(data);
    this.tell();
  }

  // Says the values at the cursor, or the last ones.
  tell() {
    const times = this.data[0];
    const chosen = this.plot?.cursor.idx;
    const index = chosen ?? times.length - 1;
    this.at.textContent = chosen === null || chosen === undefined || !times.length ? "" : `at ${clock(times[index])}`;
    this.values.forEach((shown, number) => {
      const value = this.data[number + 1]?.[index];
      shown.textContent = value === null || value === undefined ? "–" : this.text(value);
    });
  }

  key(event) {
    const steps = { ArrowLeft: -1, ArrowRight: 1, PageUp: -10, PageDown: 10, Home: -Infinity, End: Infinity };
    const step = steps[event.key];
    const times = this.data[0];
    if (step === undefined || !times.length) return;
    event.preventDefault();
    const index = Math.min(Math.max((this.plot.cursor.idx ?? times.length - 1) + step, 0), times.length - 1);
    this.plot.setCursor({ left: this.plot.valToPos(times[index], "x"), top: 0 });
    const values = this.lines.map((line, number) => `${line.label} ${this.values[number].textContent}`);
    this.canvas.setAttribute("aria-label", `${this.title}, ${this.at.textContent}: ${values.join(", ")}`);
  }

  remove() {
    this.plot.destroy();
    this.figure.remove();
  }
}
