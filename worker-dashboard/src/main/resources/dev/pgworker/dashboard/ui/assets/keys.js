/* Keyboard shortcuts. Single keys and pairs such as "g o"; never while somebody types or a dialog is open. */

import { useEffect } from "./lib.js";

const PAIR_MS = 1200;
const layers = [];
let first = null;
let firstAt = 0;

function typing(target) {
  return (
    target.isContentEditable ||
    ["TEXTAREA", "SELECT"].includes(target.tagName) ||
    (target.tagName === "INPUT" && !["checkbox", "radio", "button"].includes(target.type))
  );
}

/* The newest layer that has something to do for the key does it. */
function act(key, event) {
  for (let at = layers.length - 1; at >= 0; at--) {
    const action = layers[at][key];
    if (action && action(event) !== false) {
      return true;
    }
  }
  return false;
}

document.addEventListener("keydown", (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey || event.defaultPrevented) {
    return;
  }
  if (document.querySelector("dialog[open]") || (typing(event.target) && event.key !== "Escape")) {
    return;
  }
  const second = first !== null && event.timeStamp - firstAt < PAIR_MS && act(`${first} ${event.key}`, event);
  first = second ? null : event.key;
  firstAt = event.timeStamp;
  if (second || act(event.key, event)) {
    event.preventDefault();
  }
});

/** Adds shortcuts while the component is shown: an object of functions by key. A function that did nothing returns false. */
export function useKeys(actions) {
  useEffect(() => {
    layers.push(actions);
    return () => layers.splice(layers.indexOf(actions), 1);
  });
}
