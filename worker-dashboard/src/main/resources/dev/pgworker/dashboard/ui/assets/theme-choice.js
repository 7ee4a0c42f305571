/* The colour scheme: the system's, or the one that was chosen. theme.js applies it before the first paint. */

import { createStore } from "./store.js";

const KEY = "pgworker.theme";
const dark = matchMedia("(prefers-color-scheme: dark)");

function stored() {
  try {
    return localStorage.getItem(KEY) ?? "system";
  } catch {
    return "system";
  }
}

/** "system", "light" or "dark". */
export const themeChoice = createStore(stored());
/** "light" or "dark": what is shown; charts draw again when it changes. */
export const theme = createStore(shown());

function shown() {
  const choice = themeChoice.get();
  return choice === "light" || choice === "dark" ? choice : dark.matches ? "dark" : "light";
}

/* The colours first, because charts read them. */
function show() {
  document.documentElement.dataset.theme = shown();
  theme.set(shown());
}

dark.addEventListener("change", show);

/** Goes from system to light to dark. */
export function nextTheme() {
  const choice = { system: "light", light: "dark", dark: "system" }[themeChoice.get()] ?? "system";
  themeChoice.set(choice);
  try {
    localStorage.setItem(KEY, choice);
  } catch {
    // Without storage the choice lasts as long as the page.
  }
  show();
}
