// Which of its recording's provider streams a voice belongs to. A number in two streams is two voices, and the second is
// called `.2`, as the exports call it.

import { voiceKey } from "./words.js";

/** The lane with `stream` on each voice whose number has been heard in more than one: 1 for the first. */
export function numbered(lane) {
  const shared = grouped(lane.voices).filter((voices) => voices.length > 1);
  if (shared.length === 0) return lane;
  const first = firstHeard(lane.segments);
  const places = new Map(shared.flatMap((voices) => placed(voices, first)));
  const voices = lane.voices.map((voice) => ({ ...voice, stream: places.get(voiceKey("", voice)) }));
  return { ...lane, voices };
}

function grouped(voices) {
  const groups = new Map();
  for (const voice of voices) groups.set(voice.speaker, [...(groups.get(voice.speaker) ?? []), voice]);
  return [...groups.values()];
}

/** The place of each voice's first segment among those that are shown. */
function firstHeard(segments) {
  const first = new Map();
  segments.forEach((segment, place) => {
    const key = voiceKey("", segment);
    if (!first.has(key)) first.set(key, place);
  });
  return first;
}

/** Whose segments are shown no more was heard before the others. */
function placed(voices, first) {
  const at = (voice) => first.get(voiceKey("", voice)) ?? -1;
  const scope = (voice) => voice.scope ?? "";
  const order = (one, other) =>
    at(one) - at(other) || scope(one).localeCompare(scope(other), undefined, { numeric: true });
  return [...voices].sort(order).map((voice, place) => [voiceKey("", voice), place + 1]);
}
