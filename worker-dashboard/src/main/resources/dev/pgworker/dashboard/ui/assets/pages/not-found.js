/* An address that is no page. */

import { html } from "../lib.js";
import { Link } from "../router.js";
import { Empty, Page } from "../components/page.js";

export function NotFoundPage() {
  return html`<${Page} title="Page not found">
    <${Empty} icon="search" title="There is no such page">
      <p>Go to the <${Link} to=${[]}>overview</${Link}> or the list of <${Link} to=${["jobs"]}>jobs</${Link}>.</p>
    </${Empty}>
  </${Page}>`;
}
