// What a gateway does, second by second.
//
// The page asks for /status and for the samples of /history that it lacks. When there is
// no answer it says so, and since when: old figures are not to be taken for new ones.
"use strict";

const EVERY_MS = 1000;
const PATIENCE_MS = 4000;
const TOKEN = "tidegate-token";
const TIMES = ["waited", "first_byte", "service"];

const find = (id) => document.getElementById(id);

class Refused extends Error {}

async function ask(path) {
  const token = sessionStorage.getItem(TOKEN);
  const headers = token ? { Authorization: `Bearer ${token}` } : {};
  const answer = await fetch(path, { headers, signal: AbortSignal.timeout(PATIENCE_MS) });
  if (answer.status === 401) throw new Refused();
  if (!answer.ok) throw new Error(`it answers ${path} with ${answer.status}`);
  return answer.json();
}

// The samples that have come, in columns as in /history.
let samples = null;
// What has to be added to the time since the gateway's start.
let origin = 0;
let plots = null;

const appended = (before, after) => before.concat(after).slice(-600);

function merge(before, after) {
  if (Array.isArray(before)) {
    return typeof before[0] === "object" && before[0] !== null
      ? before.map((item, number) => merge(item, after[number]))
      : appended(before, after);
  }
  if (typeof before === "object" && before !== null) {
    return Object.fromEntries(Object.entries(before).map(([key, value]) => [key, merge(value, after[key])]));
  }
  return after;
}

const names = (history) => history.classes.map((group) => group.name).join("\n");

function take(history, status) {
  const goesOn = samples && samples.next === history.first;
  if (goesOn) {
    samples = merge(samples, history);
  } else {
    samples = history;
    origin = Date.now() / 1000 - status.uptime_s;
  }
  if (plots?.names !== names(history)) {
    plots?.all.forEach((plot) => plot.remove());
    plots = build(history.classes, status.window !== null);
    plots.names = names(history);
  }
}

function build(classes, hasWindow) {
  const named = classes.map(({ name }, number) => ({ label: name, look: look(number) }));
  const share = { label: "share", look: { colour: "--ink", dash: [5, 4] } };
  const groups = named.map((line) => {
    const lines = [{ ...line, label: "receives", look: { ...line.look, dash: [] }, fill: true }, share];
    return new Plot(find("class-plots"), { title: line.label, lines, text: rate, least: 1e4, height: 130 });
  });
  const link = new Plot(find("link-plot"), {
    title: "What the link carries",
    lines: [{ label: "carries", look: look(0), fill: true }, { label: "rate", look: { colour: "--ink", dash: [5, 4] } }],
    text: rate, least: 1e4,
  });
  const places = new Plot(find("place-plot"), {
    title: "Requests and places",
    lines: [
      { label: "in line", look: look(1) }, { label: "hold a place", look: look(0) },
      { label: "outstanding", look: look(2) },
      ...(hasWindow ? [{ label: "window", look: { colour: "--ink", dash: [5, 4] } }] : []),
    ],
    text: count, least: 4, steps: COUNTS,
  });
  const times = (id, title) => new Plot(find(id), { title, lines: named, text: time, least: 0.05 });
  const line = times("line-plot", "Time in line, 95 of 100 at most");
  const service = times("service-plot", "Time to the first byte, 95 of 100 at most");
  return { groups, link, places, line, service, all: [...groups, link, places, line, service] };
}

function draw() {
  const minutes = Number(document.querySelector("#range input:checked").value);
  const times = samples.uptime_s.map((uptime) => origin + uptime);
  const end = times[times.length - 1] ?? Date.now() / 1000;
  const range = [end - 60 * minutes, end];
  const first = times.findIndex((at) => at >= range[0]);
  const from = (column) => (first < 0 ? [] : column.slice(first));
  const x = from(times);
  const top = samples.classes.flatMap((group) => [...from(group.received_bps), ...from(group.share_bps)])
    .reduce((most, value) => (value > most ? value : most), 1e4) * 1.08;
  samples.classes.forEach((group, number) => {
    plots.groups[number].show([x, from(group.received_bps), from(group.share_bps)], range, top);
  });
  plots.link.show([x, from(samples.carried_bps), from(samples.rate_bps)], range);
  plots.places.show([x, from(samples.waiting), from(samples.held), from(samples.outstanding), from(samples.window)].slice(0, plots.places.lines.length + 1), range);
  plots.line.show([x, ...samples.classes.map((group) => from(group.waited.p95_s))], range);
  plots.service.show([x, ...samples.classes.map((group) => from(group.first_byte.p95_s))], range);
}

function fill(table, rows) {
  const cells = rows.map(([head, ...rest]) => element("tr", {}, element("th", { scope: "row" }, ...head), ...rest.map((cell) => (cell instanceof Node ? cell : element("td", {}, cell)))));
  find(table).tBodies[0].replaceChildren(...cells);
}

function tell(status) {
  const { classes } = status;
  find("about").textContent = `${status.scheduler} on a link of ${brief(rate(status.rate_bps))}, running for ${long(status.uptime_s)}`;
  const sum = (of) => classes.reduce((all, group) => all + of(group), 0);
  const tiles = [
    ["Link carries", rate(status.carried_bps), `${percent(status.carried_bps, status.rate_bps)} of ${brief(rate(status.rate_bps))}`],
    ["In line", count(status.waiting), "requests"],
    ["Places held", count(status.held), status.window === null ? "no fixed window" : `of ${digits(status.window)}`],
    ["Outstanding", count(status.outstanding), "responses"],
    ["Active users", count(sum((group) => group.users)), `in ${count(classes.filter((group) => group.users > 0).length)} of ${count(classes.length)} classes`],
    ["Tunnels", count(status.tunnels), "open"],
    ["Uploads", count(status.uploads), "in progress"],
    ["Connections", count(status.connections), "of clients"],
  ];
  find("tiles").replaceChildren(...tiles.map(([name, value, more]) => element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, more)))));
  fill("class-table", classes.map((group, number) => [
    [swatch(look(number)), group.name],
    count(group.weight), count(group.users), rate(group.received_bps),
    group.share_bps === null ? "–" : rate(group.share_bps),
    ...TIMES.flatMap((stage) => (group[stage] ? [time(group[stage].median_s), time(group[stage].p95_s)] : ["–", "–"])),
    count(group.completed + group.failed + group.refused), count(group.failed + group.refused), size(group.received_bytes),
  ]));
  const nobody = [[["nobody"], "", ""]];
  const users = (list, of) => (list.length ? list.map((user) => [[user.user], element("td", { class: "words" }, user.class), of(user)]) : nobody);
  fill("busy-users", users(status.busy_users, (user) => rate(user.received_bps)));
  fill("top-users", users(status.top_users, (user) => size(user.received_bytes)));
}

let answered = null;

function trouble(error) {
  const since = answered === null ? "" : ` since ${clock(answered)}; what is shown is of then`;
  const reason = error.name === "TimeoutError" || error instanceof TypeError ? "" : ` (${error.message})`;
  const text = `The gateway does not answer${since}${reason}.`;
  // Said once: a screen reader repeats what changes.
  if (find("trouble").textContent !== text) find("trouble").textContent = text;
  find("trouble").hidden = false;
  find("figures").classList.add("stale");
}

async function poll() {
  try {
    const since = samples ? `?since=${samples.next}` : "";
    let [status, history] = await Promise.all([ask("/status"), ask(`/history${since}`)]);
    if (samples && samples.started_unix_ms !== history.started_unix_ms) {
      // It was started anew, and the numbers of its samples too.
      samples = null;
      history = await ask("/history");
    } else if (samples && names(samples) !== names(history)) {
      // Its file has other classes, of which all that there is was rearranged.
      history = await ask("/history");
      samples = null;
    }
    find("login").hidden = true;
    find("figures").hidden = false;
    tell(status);
    take(history, status);
    draw();
    answered = Date.now() / 1000;
    find("trouble").hidden = true;
    find("figures").classList.remove("stale");
  } catch (error) {
    if (error instanceof Refused) {
      if (sessionStorage.getItem(TOKEN)) find("refused").textContent = "The gateway has another token.";
      sessionStorage.removeItem(TOKEN);
      find("login").hidden = false;
      find("figures").hidden = true;
      find("about").textContent = "It tells its figures to those who know its token.";
      return;
    }
    trouble(error);
  }
  setTimeout(next, EVERY_MS);
}

// Nobody looks at a page that is hidden; it gets what it lacks when it is shown.
function next() {
  if (document.hidden) document.addEventListener("visibilitychange", next, { once: true });
  else poll();
}

find("login").addEventListener("submit", (event) => {
  event.preventDefault();
  sessionStorage.setItem(TOKEN, find("token").value.trim());
  find("refused").textContent = "";
  poll();
});
find("range").addEventListener("change", () => samples && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => plots?.all.forEach((plot) => plot.build()));
poll();
