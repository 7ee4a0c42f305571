/* Keyboard shortcuts. Single keys and pairs such as "g o"; never while somebody types or a dialog is open. */

import { useEffect } from "./lib.js";

const PAIR_MS = 1200;
const layers = [];
let first = null;
let firstAt = 0;

function typing(target) {
  return target.isContentEditable
    || ["TEXTAREA", "SELECT"].includes(target.tagName)
    || (target.tagName === "INPUT" && !["checkbox", "radio", "button"].includes(target.type));
}

function find(key) {
  for (let at = layers.length - 1; at >= 0; at--) {
    const action = layers[at].current[key];
    if (action) {
      return action;
    }
  }
  return null;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) {
    return;
  }
  if (document.querySelector("dialog[open]") || (typing(event.target) && event.key !== "Escape")) {
    return;
  }
  const pair = first !== null && event.timeStamp - firstAt < PAIR_MS ? find(`${first} ${event.key}`) : null;
  first = event.key;
  firstAt = event.timeStamp;
  const action = pair ?? find(event.key);
  if (action && action(event) !== false) {
    event.preventDefault();
    if (pair) {
      first = null;
    }
  }
});

/** Adds shortcuts while the component is shown: an object of functions by key. A function that did nothing returns false. */
export function useKeys(actions) {
  useEffect(() => {
    const layer = { current: actions };
    layers.push(layer);
    return () => layers.splice(layers.indexOf(layer), 1);
  });
}
