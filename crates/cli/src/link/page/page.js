// What a link does, second by second.
//
// The page asks for /status and for the seconds of /history that it lacks. When there is no
// answer it says so, and since when: old figures are not to be taken for new ones.
"use strict";

const EVERY_MS = 1000;
const PATIENCE_MS = 4000;
const MOST_SECONDS = 600;
const WAYS = ["down", "up"];

const find = (id) => document.getElementById(id);
const plain = (colour, dash = []) => ({ colour: `--line-${colour}`, dash });
// Delays have tenths of milliseconds.
const delay = (ms) => (ms >= 100 ? time(ms / 1000) : `${ms.toFixed(1)} ms`);

async function ask(path) {
  const answer = await fetch(path, { signal: AbortSignal.timeout(PATIENCE_MS) });
  if (!answer.ok) throw new Error(`it answers ${path} with ${answer.status}`);
  return answer.json();
}

// The seconds that have come, of each direction.
const seconds = { down: [], up: [] };
// What has to be added to the time since the link's start.
let origin = null;
let uptime = 0;
const plots = {};

function forget() {
  WAYS.forEach((way) => { seconds[way] = []; });
  origin = null;
}

const last = (way) => seconds[way][seconds[way].length - 1]?.at_s ?? -1;

function take(history, status) {
  for (const { direction, seconds: more } of history.queues) {
    const known = more.filter((second) => second.at_s > last(direction));
    seconds[direction] = seconds[direction].concat(known).slice(-MOST_SECONDS);
  }
  origin ??= Date.now() / 1000 - status.uptime_s;
}

function build(way) {
  const parent = find(`${way}-plots`);
  const limit = { colour: "--ink", dash: [5, 4] };
  return {
    sent: new Plot(parent, {
      title: `Throughput ${way}, against the rate`,
      lines: [{ label: "sent", look: plain(0), fill: true }, { label: "rate", look: limit }],
      text: rate, least: 1e4,
    }),
    delay: new Plot(parent, {
      title: `Time in the queue ${way}`,
      lines: [{ label: "p99", look: plain(1, [2, 3]) }, { label: "p95", look: plain(3, [8, 4]) }, { label: "median", look: plain(0) }],
      text: delay, least: 5,
    }),
    queue: new Plot(parent, { title: `Queue ${way}`, lines: [{ label: "queued", look: plain(2), fill: true }], text: size, least: 1e4 }),
    lost: new Plot(parent, {
      title: `Losses and marks ${way}, a second`,
      lines: [{ label: "lost", look: plain(1) }, { label: "marked", look: plain(4, [8, 4]) }],
      text: count, least: 4, steps: COUNTS,
    }),
  };
}

function draw() {
  const minutes = Number(document.querySelector("#range input:checked").value);
  const end = origin + Math.max(...WAYS.map(last), 0);
  const range = [end - 60 * minutes, end];
  for (const way of WAYS) {
    plots[way] ??= build(way);
    const shown = seconds[way].filter((second) => origin + second.at_s >= range[0]);
    const times = shown.map((second) => origin + second.at_s);
    const column = (of) => shown.map(of);
    // Of no packets there is no delay.
    const waited = (of) => column((second) => (second.delay.count ? of(second.delay) : null));
    plots[way].sent.show([times, column((it) => it.sent_bps), column((it) => it.rate_bps)], range);
    plots[way].delay.show([times, waited((it) => it.p99_ms), waited((it) => it.p95_ms), waited((it) => it.p50_ms)], range);
    plots[way].queue.show([times, column((it) => it.queued_bytes)], range);
    plots[way].lost.show([times, column((it) => it.lost_packets), column((it) => it.marked_packets)], range);
  }
}

function fill(table, rows) {
  const cells = rows.map(([head, ...rest]) => element("tr", {}, element("th", { scope: "row" }, head), ...rest.map((cell) => element("td", {}, cell))));
  find(table).tBodies[0].replaceChildren(...cells);
}

const delays = (of) => (of.count ? [of.p50_ms, of.p95_ms, of.p99_ms, of.max_ms].map(delay) : ["–", "–", "–", "–"]);

const COUNTED = [
  ["arrived", (queue) => queue.counts.arrived_packets],
  ["sent", (queue) => queue.counts.sent_packets],
  ["marked", (queue) => queue.counts.marked_packets],
  ["lost: the buffer was full", (queue) => queue.counts.lost.refused],
  ["lost: pushed out", (queue) => queue.counts.lost.pushed_out],
  ["lost: early", (queue) => queue.counts.lost.early],
  ["lost: superseded", (queue) => queue.counts.lost.superseded],
  ["lost: excess", (queue) => queue.counts.lost.excess],
  ["super-packets split", (queue) => queue.counts.split_frames],
  ["frames other than IP", (queue) => queue.counts.other_frames],
  ["failures: malformed", (queue) => queue.failures.malformed_frames],
  ["failures: unreadable", (queue) => queue.failures.unreadable_frames],
  ["failures: missed", (queue) => queue.failures.missed_frames],
  ["failures: no memory", (queue) => queue.failures.no_memory_packets],
  ["failures: unsent", (queue) => queue.failures.unsent_packets],
  ["flows remembered", (queue) => queue.flows],
  ["the most of them", (queue) => queue.flows_peak],
];
// What always has a row; the others have one when they are not zero.
const ALWAYS = ["arrived", "sent", "marked", "flows remembered", "the most of them"];

// A router has no one interface for all of its users.
const place = ({ inside, outside }) => (inside === null ? `for what passes ${outside} of a router` : `between ${inside} (users) and ${outside} (provider)`);

function tell(status) {
  const queues = WAYS.map((way) => status.queues.find((queue) => queue.direction === way));
  const names = [...new Set(queues.map((queue) => queue.discipline))].join(" and ");
  find("about").textContent = `${status.name}: ${names} ${place(status)}, running for ${long(status.uptime_s)}`;
  const tiles = queues.flatMap((queue) => {
    const { last_second: now, direction: way, rate_bps } = queue;
    return [
      [`Sent ${way}`, rate(now.sent_bps), `${percent(now.sent_bps, rate_bps)} of ${brief(rate(rate_bps))}`],
      [`Delay ${way}`, now.delay.count ? delay(now.delay.p95_ms) : "–", "95 of 100 at most"],
      [`Queue ${way}`, size(queue.queued_bytes), `${count(queue.queued_packets)} packets`],
      [`Lost ${way}`, count(now.lost_packets), `and ${count(now.marked_packets)} marked, a second`],
    ];
  });
  find("tiles").replaceChildren(...tiles.map(([name, value, more]) => element("div", {}, element("dt", {}, name), element("dd", {}, value, element("small", {}, more)))));
  fill("level-table", queues.flatMap((queue) => [
    [queue.direction, count(queue.queued_packets), size(queue.queued_bytes), count(queue.counts.arrived_packets), ...delays(queue.delay)],
    ...(queue.levels.length > 1 ? queue.levels.map((level) => [`${queue.direction}, ${level.name}`, count(level.queued_packets), size(level.queued_bytes), count(level.enqueued_packets), ...delays(level.delay)]) : []),
  ]));
  const rows = COUNTED.map(([name, of]) => [name, ...queues.map(of)]);
  fill("count-table", rows.filter(([name, ...values]) => ALWAYS.includes(name) || values.some((value) => value > 0)).map(([name, ...values]) => [name, ...values.map(count)]));
  const flows = queues.flatMap((queue) => queue.top_flows.map((flow) => [flow, queue.direction]));
  flows.sort(([a], [b]) => b.rate_bps - a.rate_bps);
  fill("flow-table", flows.length ? flows.map(([flow, way]) => [flow.flow, way, rate(flow.rate_bps)]) : [["none", "", ""]]);
  const settings = [
    ["discipline", ...queues.map((queue) => queue.discipline)],
    ["rate", ...queues.map((queue) => brief(rate(queue.rate_bps)))],
    ["buffer", ...queues.map((queue) => queue.buffer)],
    ["framing", ...queues.map((queue) => queue.framing)],
  ];
  const parameters = new Set(queues.flatMap((queue) => Object.keys(queue.parameters)));
  for (const name of parameters) {
    settings.push([name, ...queues.map((queue) => queue.parameters[name] ?? "–")]);
  }
  fill("setting-table", settings);
}

let answered = null;

function trouble(error) {
  const since = answered === null ? "" : ` since ${clock(answered)}; what is shown is of then`;
  const reason = error.name === "TimeoutError" || error instanceof TypeError ? "" : ` (${error.message})`;
  const text = `The link does not answer${since}${reason}.`;
  // Said once: a screen reader repeats what changes.
  if (find("trouble").textContent !== text) find("trouble").textContent = text;
  find("trouble").hidden = false;
  find("figures").classList.add("stale");
}

async function poll() {
  try {
    const status = await ask("/status");
    // It was started anew.
    if (status.uptime_s < uptime) forget();
    uptime = status.uptime_s;
    const history = await ask(`/history?since=${Math.max(Math.min(...WAYS.map(last)), 0)}`);
    take(history, status);
    find("figures").hidden = false;
    tell(status);
    draw();
    answered = Date.now() / 1000;
    find("trouble").hidden = true;
    find("figures").classList.remove("stale");
  } catch (error) {
    trouble(error);
  }
  setTimeout(next, EVERY_MS);
}

// Nobody looks at a page that is hidden; it gets what it lacks when it is shown.
function next() {
  if (document.hidden) document.addEventListener("visibilitychange", next, { once: true });
  else poll();
}

find("range").addEventListener("change", () => origin !== null && draw());
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => Object.values(plots).forEach((group) => Object.values(group).forEach((plot) => plot.build())));
poll();
