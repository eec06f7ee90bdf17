// What the page calls things, and how it writes numbers. No nodes and no requests.

/** The six statuses: the word on the badge, and the class of its colour. */
const STATUS = {
  user: { word: "Owner", tone: "owner" },
  not_user: { word: "Known", tone: "known" },
  no_match: { word: "Nobody known", tone: "nobody" },
  ambiguous: { word: "Ambiguous", tone: "ambiguous" },
  unknown: { word: "Near miss", tone: "near" },
  pending: { word: "No verdict yet", tone: "pending" },
};

export function status(voice) {
  return STATUS[voice.status] ?? { word: voice.status ?? "No verdict yet", tone: "pending" };
}

/** What the transcriber calls the voice; one that shares its number is told apart by its provider stream. */
export function ownName(voice) {
  const name = voice.label ?? `Voice ${voice.speaker}`;
  return voice.stream > 1 ? `${name}.${voice.stream}` : name;
}

/** Who it is, or what the transcriber calls it. */
export function shownName(voice) {
  return voice.person_name ?? voice.person_id ?? ownName(voice);
}

/** Whether somebody decided it by hand. */
export function isManual(voice) {
  return (voice.origin ?? voice.source) === "manual";
}

/** One voice of one recording: a number in two provider streams is two voices. */
export function voiceKey(recording, voice) {
  return JSON.stringify([recording ?? "", voice.scope ?? "", voice.speaker]);
}

/** A verdict in one sentence, for whoever hears the page. */
export function verdict(voice) {
  const name = ownName(voice);
  const by = isManual(voice) ? ", as somebody decided" : "";
  switch (voice.status) {
    case "user":
      return `${name} is ${shownName(voice)}, the owner${by}.`;
    case "not_user":
      return `${name} is ${shownName(voice)}${by}.`;
    case "no_match":
      return `${name} is nobody who is known${by}.`;
    case "ambiguous":
      return `${name} could be several people.`;
    case "unknown":
      return `${name} comes close to somebody, and not close enough.`;
    default:
      return `${name} has no verdict yet.`;
  }
}

/** `1:05`, `1:02:03`. */
export function clock(seconds) {
  const whole = Math.max(0, Math.floor(seconds ?? 0));
  const [hours, minutes, rest] = [Math.floor(whole / 3600), Math.floor(whole / 60) % 60, whole % 60];
  const two = (value) => String(value).padStart(2, "0");
  return hours > 0 ? `${hours}:${two(minutes)}:${two(rest)}` : `${minutes}:${two(rest)}`;
}

/** `0.4 s`, `12 s`, `3 min`. */
export function duration(seconds) {
  const value = Math.max(0, seconds ?? 0);
  if (value < 9.95) return `${value.toFixed(1)} s`;
  if (value < 119.5) return `${Math.round(value)} s`;
  return value < 7200 ? `${Math.round(value / 60)} min` : `${(value / 3600).toFixed(1)} h`;
}

export function distance(value) {
  // Rounding can leave a voice a hair nearer than nothing.
  return value === undefined || value === null ? "–" : Math.max(0, value).toFixed(2);
}

/** A moment, seconds since 1970: the time today, else the date with it. */
export function moment(seconds) {
  const at = new Date(seconds * 1000);
  const time = at.toLocaleTimeString([], { hour: "2-digit", minute: "2-digit" });
  const isToday = at.toDateString() === new Date().toDateString();
  return isToday ? time : `${at.toLocaleDateString([], { day: "numeric", month: "short" })}, ${time}`;
}

/** `1 voice`, `3 voices`. */
export function count(number, one, many = `${one}s`) {
  return `${number} ${number === 1 ? one : many}`;
}

/** The server's words, with a capital and a full stop. */
export function sentence(words) {
  return `${words.charAt(0).toUpperCase()}${words.slice(1)}${/[.?!]$/.test(words) ? "" : "."}`;
}
