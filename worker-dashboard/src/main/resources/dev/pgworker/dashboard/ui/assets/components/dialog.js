/* Dialogs. The browser keeps the focus inside, closes on Escape, and gives the focus back. */

import { html, useEffect, useId, useRef, useState } from "../lib.js";
import { createStore, useStore } from "../store.js";
import { Button } from "./button.js";
import { Icon } from "./icons.js";
import { Foreign } from "./words.js";

const open = createStore(null);

/** Shows a dialog: a function of close() that returns its element. One at a time. */
export function showDialog(content) {
  open.set({ content });
}

export function DialogHost() {
  const shown = useStore(open);
  return shown && html`<${shown.content} close=${() => open.set(null)} />`;
}

/**
 * The frame of a dialog: title, body, and buttons at the end.
 *
 * @param locked whether it cannot be closed at the moment
 */
export function Dialog({ title, close, children, buttons, wide = false, locked = false }) {
  const dialog = useRef(null);
  const id = useId();
  useEffect(() => {
    const element = dialog.current;
    const before = /** @type {HTMLElement | null} */ (document.activeElement);
    element.showModal();
    // The browser would choose the close button.
    (
      element.querySelector(".dialog-body :is(input, textarea, select)") ?? element.querySelector(".dialog-foot button")
    )?.focus();
    return () => {
      element.close();
      before?.focus();
    };
  }, []);
  const cancel = (event) => {
    event.preventDefault();
    if (!locked) {
      close();
    }
  };
  return html`<dialog ref=${dialog} class=${wide ? "wide" : ""} aria-labelledby=${id} onCancel=${cancel}>
    <div class="dialog-head">
      <h2 id=${id}>${title}</h2>
      <button type="button" class="button quiet icon-only" aria-label="Close" disabled=${locked} onClick=${close}>
        <${Icon} name="close" /></button>
    </div>
    <div class="dialog-body">${children}</div>
    <div class="dialog-foot">${buttons}</div>
  </dialog>`;
}

/**
 * Asks before something happens, does it, and shows why it could not be done.
 *
 * @param run function that returns a promise; the dialog closes when it is fulfilled
 * @param dismiss what the button says that closes the dialog
 * @param wide whether it has a large field
 */
export function Confirm({ title, action, danger = false, run, close, dismiss = "Cancel", wide = false, children }) {
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const go = async () => {
    setBusy(true);
    setError(null);
    try {
      await run();
      close();
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} close=${close} locked=${busy} wide=${wide} buttons=${html`
    <${Button} onClick=${close} disabled=${busy}>${dismiss}</${Button}>
    <${Button} kind=${danger ? "danger" : "primary"} onClick=${go} disabled=${busy}>${busy ? "Working…" : action}</${Button}>
  `}>
    ${children}
    <${FormError} text=${error} />
  </${Dialog}>`;
}

/** An error of a form, read aloud when it appears. */
export function FormError({ text }) {
  return html`<div role="alert">${
    text &&
    html`<p class="form-error"><${Icon} name="warning" /><span><${Foreign} text=${text} most=${2000} /></span></p>`
  }</div>`;
}
