// What people decided about single segments of a live conversation, as its labels tell: for a segment the newest of its
// own decision and its voice's holds.

import { voiceKey } from "./words.js";

export class Rulings {
  constructor({ voices, segments }) {
    const generations = new Map(voices.map((entry) => [voiceKey(entry.recording_id, entry), entry.generation]));
    const isNewest = (entry) => entry.generation >= (generations.get(voiceKey(entry.recording_id, entry)) ?? 0);
    this.truths = new Map(
      segments.filter(isNewest).map((entry) => [segmentKey(entry.recording_id, entry), truth(entry)]),
    );
  }

  get isEmpty() {
    return this.truths.size === 0;
  }

  /** What overrules the voice's verdict for one segment, if anything does. */
  of(recording, segment) {
    return this.truths.get(segmentKey(recording, segment));
  }
}

function segmentKey(recording, segment) {
  return `${voiceKey(recording, segment)}${segment.segment_id}`;
}

function truth(entry) {
  const isNamed = entry.person_id && !entry.rejected;
  return {
    status: isNamed ? (entry.is_owner ? "user" : "not_user") : "no_match",
    person_id: isNamed ? entry.person_id : undefined,
    person_name: isNamed ? entry.person_name : undefined,
    origin: "manual",
  };
}
