/* The dialog with a form that makes or changes one thing. */

import { html, useEffect, useId, useState } from "../lib.js";
import { whyNot } from "../session.js";
import { Button } from "./button.js";
import { Dialog, FormError, showDialog } from "./dialog.js";
import { toast } from "./toast.js";

/** Shows a form, as showDialog does, to visitors who may do what it is for; tells the others why they may not. */
export function openForm(action, content) {
  const reason = whyNot(action);
  if (reason) {
    toast({ text: reason, level: "error" });
  } else {
    showDialog(content);
  }
}

/**
 * Sends what the fields say, and shows why that failed. Whoever sent the form goes on where it is wrong.
 *
 * @param verb what the button says, and what it says meanwhile
 * @param start the values that the fields begin with, by their names, or a function that returns them
 * @param send function of the values that returns a promise of the toast that tells what was done
 * @param fieldOf function of the text of an error that returns the name of the field that is wrong, or null
 * @param children function that returns the fields; see form-fields.js for what it is given
 */
export function FormDialog({
  title,
  verb,
  start,
  send,
  fieldOf = (/** @type {string} */ _error) => null,
  close,
  children,
}) {
  const id = useId();
  const [values, setValues] = useState(start);
  const [busy, setBusy] = useState(false);
  const [error, setError] = useState(null);
  const wrong = error === null ? null : fieldOf(error);
  useEffect(() => {
    if (wrong !== null) {
      document.getElementById(id + wrong)?.focus();
    }
  }, [wrong, error]);

  const submit = async (event) => {
    event.preventDefault();
    setBusy(true);
    setError(null);
    try {
      toast(await send(values));
      close();
    } catch (failure) {
      setError(failure.message);
      setBusy(false);
    }
  };
  return html`<${Dialog} title=${title} close=${close} locked=${busy} wide=${true}
    buttons=${html`<${Button} onClick=${close} disabled=${busy}>Cancel</${Button}>
      <button class="button primary" form=${id + "form"} disabled=${busy}><span>${verb[busy ? 1 : 0]}</span></button>`}>
    <form id=${id + "form"} onSubmit=${submit}>
      ${children({ id, values, wrong, set: (name, value) => setValues({ ...values, [name]: value }) })}
    </form>
    <${FormError} text=${error} />
  </${Dialog}>`;
}

/** What the button of a form says that makes a thing, or changes one. */
export function verbOf(changes) {
  return changes ? ["Change", "Changing…"] : ["Create", "Creating…"];
}
