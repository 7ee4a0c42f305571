/* The JSON API: reading, writing, and what went wrong in words. */

/** An answer other than success; the message is a sentence for people. */
export class ApiError extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

let csrf = {};
let renew = null;

/** The headers that every write carries. */
export function useCsrf(headers) {
  csrf = headers;
}

/** What fetches those headers again when they have become old, for example because somebody signed in again. */
export function renewCsrfBy(load) {
  renew = load;
}

async function request(path, options) {
  let response;
  try {
    response = await fetch(path, { credentials: "same-origin", cache: "no-store", ...options });
  } catch (failure) {
    if (failure.name === "AbortError") {
      throw failure;
    }
    throw new ApiError(0, "The application does not answer. Is it running, and is the network up?");
  }
  const answer = await body(response);
  if (!response.ok) {
    throw new ApiError(response.status, answer?.error ?? wordsFor(response));
  }
  if (answer === null) {
    throw new ApiError(
      response.status,
      "The application sent a page instead of data. Your session may have ended: reload the page.",
    );
  }
  return answer;
}

async function body(response) {
  try {
    return await response.json();
  } catch {
    return null;
  }
}

function wordsFor(response) {
  switch (response.status) {
    case 401:
      return "You are not signed in, or your session has ended. Reload the page to sign in.";
    case 403:
      return "You may not do this, or your session has ended. Reload the page.";
    case 404:
      return "This does not exist.";
    default:
      return `The application answered with status ${response.status}.`;
  }
}

/** Query string of the parameters that have a value, with a question mark; empty if none has. */
export function query(parameters) {
  const search = new URLSearchParams();
  for (const [name, value] of Object.entries(parameters)) {
    if (value !== null && value !== undefined && value !== "") {
      search.set(name, value);
    }
  }
  const text = search.toString();
  return text ? "?" + text : "";
}

export function getMe(signal) {
  return request("api/me", { signal });
}

/** The API of one worker instance. */
export function instanceApi(instance) {
  const base = "api/" + encodeURIComponent(instance) + "/";
  return {
    base,
    get: (path, parameters = {}, signal = undefined) => request(base + path + query(parameters), { signal }),
    post: (path, data = {}) => write(base + path, JSON.stringify(data)),
  };
}

async function write(path, body) {
  const send = () => request(path, { method: "POST", headers: { "Content-Type": "application/json", ...csrf }, body });
  const used = csrf;
  try {
    return await send();
  } catch (error) {
    if (error.status !== 403) {
      throw error;
    }
    await renew();
    if (JSON.stringify(csrf) === JSON.stringify(used)) {
      throw error;
    }
    return send();
  }
}
