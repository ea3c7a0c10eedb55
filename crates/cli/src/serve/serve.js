// Follows the folder: looks again every few seconds, and replaces the list when it differs.
// What is ticked stays ticked, and nothing moves while nothing has changed.
'use strict';

const EVERY_MS = 3000;
const list = () => document.querySelector('#results');
const ticked = () => new Set(Array.from(document.querySelectorAll('input:checked'), (it) => it.value));

async function look() {
  try {
    const answer = await fetch('/', { cache: 'no-store' });
    const page = new DOMParser().parseFromString(await answer.text(), 'text/html');
    const fresh = page.querySelector('#results');
    if (fresh && fresh.dataset.names !== list().dataset.names) {
      const chosen = ticked();
      list().replaceWith(fresh);
      for (const box of document.querySelectorAll('input')) box.checked = chosen.has(box.value);
    }
  } catch {
    // The program has ended, or will answer the next time.
  }
}

if (list()) setInterval(look, EVERY_MS);
