/* Start of the dashboard: the session, then the shell with the page that the URL names. */

import { html, render } from "./lib.js";
import { loadSession } from "./session.js";
import { startTooltips } from "./components/tooltip.js";
import { Shell } from "./shell.js";

startTooltips();
render(html`<${Shell} />`, document.getElementById("app"));
loadSession();
