// The server's feed: which conversations there are, and the chosen one as it changes. It closes while nobody looks at
// the page, so that a forgotten tab costs the server nothing.

const RETRY_MIN_MS = 1000;
const RETRY_MAX_MS = 15000;
const NEWS = ["conversations", "conversation", "ended"];

export class Feed {
  /** `on` has a function for each kind of news, and `state("open" | "lost" | "paused")`. */
  constructor(on) {
    this.on = on;
    this.wait = RETRY_MIN_MS;
    document.addEventListener("visibilitychange", () => (document.hidden ? this.pause() : this.open()));
  }

  /** Follows another conversation, or none. */
  choose(conversation) {
    if (this.source && this.conversation === conversation) return;
    this.conversation = conversation;
    this.open();
  }

  open() {
    this.close();
    const query = this.conversation ? `?conversation_id=${encodeURIComponent(this.conversation)}` : "";
    const source = new EventSource(`/v1/watch${query}`);
    this.source = source;
    source.addEventListener("open", () => {
      this.wait = RETRY_MIN_MS;
      this.on.state("open");
    });
    source.addEventListener("error", () => this.lost(source));
    for (const kind of NEWS) {
      source.addEventListener(kind, (event) => this.on[kind](JSON.parse(event.data)));
    }
  }

  /** A browser comes back by itself after a broken connection, and never after a refusal. */
  lost(source) {
    if (source !== this.source) return;
    this.on.state("lost");
    if (source.readyState !== EventSource.CLOSED) return;
    this.retry = setTimeout(() => this.open(), this.wait);
    this.wait = Math.min(2 * this.wait, RETRY_MAX_MS);
  }

  pause() {
    this.close();
    this.on.state("paused");
  }

  close() {
    clearTimeout(this.retry);
    this.source?.close();
    this.source = undefined;
  }
}
