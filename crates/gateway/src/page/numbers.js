// Numbers with units, of three digits.
"use strict";

// Steps of a scale of what has no halves.
const COUNTS = [0, 1, 2, 3, 4].flatMap((power) => [1, 2, 5].map((step) => step * 10 ** power));

const digits = (value) => (value >= 100 ? value.toFixed(0) : value >= 10 ? value.toFixed(1) : value.toFixed(2));
const scaled = (value, units) => {
  const least = units[units.length - 1];
  const [factor, unit] = units.find(([factor]) => value >= factor) ?? least;
  return value === 0 ? `0 ${least[1]}` : `${digits(value / factor)} ${unit}`;
};
const rate = (bps) => scaled(bps, [[1e9, "Gbit/s"], [1e6, "Mbit/s"], [1e3, "kbit/s"]]);
const size = (bytes) => scaled(bytes, [[1e12, "TB"], [1e9, "GB"], [1e6, "MB"], [1e3, "kB"]]);
const time = (seconds) => (seconds >= 1 ? `${digits(seconds)} s` : seconds > 0 && seconds < 0.001 ? "< 1 ms" : `${(seconds * 1000).toFixed(0)} ms`);
const count = (number) => Math.round(number).toLocaleString("en");
const percent = (part, all) => `${all > 0 ? ((100 * part) / all).toFixed(0) : 0} %`;
const long = (seconds) => {
  const minutes = Math.floor(seconds / 60);
  if (minutes < 1) return `${Math.floor(seconds)} s`;
  if (minutes < 120) return `${minutes} min`;
  return minutes < 2880 ? `${Math.floor(minutes / 60)} h` : `${Math.floor(minutes / 1440)} days`;
};
