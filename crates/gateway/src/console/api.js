// Requests to the server. Whatever goes wrong becomes an error whose message is for people.

/** What the server refused, with its problem document. */
export class Refused extends Error {
  constructor(status, problem) {
    super(problem.detail ?? `the server answered ${status}`);
    this.status = status;
    this.problem = problem;
  }
}

async function request(method, path, body, type) {
  const headers = type ? { "content-type": type } : {};
  let answer;
  try {
    answer = await fetch(path, { method, headers, body, cache: "no-store" });
  } catch {
    throw new Error("the server cannot be reached; it may have stopped");
  }
  const told = answer.status === 204 ? undefined : await answer.json().catch(() => ({}));
  if (!answer.ok) throw new Refused(answer.status, told ?? {});
  return told;
}

const json = (method, path, body) => request(method, path, JSON.stringify(body), "application/json");
const person = (id) => `/v1/people/${encodeURIComponent(id)}`;
const conversation = (id) => `/v1/conversations/${encodeURIComponent(id)}`;

export const people = () => request("GET", "/v1/people").then((answer) => answer.people);
export const createPerson = (id, name, owner) => json("POST", "/v1/people", { id, name, ...(owner && { owner }) });
export const deletePerson = (id) => request("DELETE", person(id));
export const addSample = (id, audio, force) =>
  request(
    "POST",
    `${person(id)}/samples${force ? "?force=true" : ""}`,
    audio,
    audio.type || "application/octet-stream",
  );

export const readConversation = (id) => request("GET", conversation(id));
export const deleteConversation = (id) => request("DELETE", conversation(id));
export const readSegments = (id) =>
  request("GET", `${conversation(id)}/export?format=json`).then((told) => told.segments);
export const readLabels = (id) => request("GET", `${conversation(id)}/labels`);
export const exportPath = (id, format) => `${conversation(id)}/export?format=${format}`;
export const explain = (id, speaker) => request("GET", `${conversation(id)}/voices/${speaker}/explain`);
/** `correction` is a `label` or `reject` message of the socket. */
export const correct = (id, correction) => json("POST", `${conversation(id)}/labels`, correction);
