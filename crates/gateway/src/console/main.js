// Where the page begins: which view is shown, which conversation is followed, and who hears the feed.

import { toast } from "./announce.js";
import { Conversation } from "./conversation.js";
import { Conversations } from "./conversations.js";
import { attributes, text } from "./dom.js";
import { openEnrolment } from "./enrol.js";
import { Feed } from "./feed.js";
import { People } from "./people.js";

const STATES = { open: "Live", lost: "Reconnecting", paused: "Paused", opening: "Connecting" };
const byId = (id) => document.getElementById(id);

const people = new People(byId("view-people"));
const conversation = new Conversation(byId("main"), people, deleted);
const conversations = new Conversations(byId("list"), byId("list-empty"));
const feed = new Feed({
  state: linkState,
  conversations: (news) => {
    conversations.update(news.conversations);
    follow();
  },
  conversation: (news) => conversation.update(news),
  ended: (news) => conversation.ended(news.conversation_id).then(follow),
});

function linkState(state) {
  attributes(byId("link-state"), { "data-state": state });
  text(byId("link-text"), STATES[state]);
  // It is told again with the first news.
  if (state !== "open") conversation.isFed = false;
}

function deleted(id) {
  conversations.forget(id);
  history.replaceState(undefined, "", "#/");
  follow();
}

/** The conversation that the address names, or none: then the newest one is shown. */
function named() {
  const found = /^#\/conversations\/(.+)$/.exec(location.hash);
  try {
    return found ? decodeURIComponent(found[1]) : undefined;
  } catch {
    // A per cent sign that begins nothing: somebody's mistake, and nobody's id.
    return undefined;
  }
}

function follow() {
  const id = named() ?? conversations.newest(conversation.id, conversation.isLive);
  conversations.mark(id);
  conversation.show(id);
  feed.choose(id);
}

function route() {
  const isPeople = location.hash === "#/people";
  byId("view-conversations").hidden = isPeople;
  byId("view-people").hidden = !isPeople;
  attributes(byId("tab-conversations"), { "aria-current": isPeople ? undefined : "page" });
  attributes(byId("tab-people"), { "aria-current": isPeople ? "page" : undefined });
  document.title = isPeople ? "People · Rollcall" : "Rollcall";
  if (isPeople) refreshPeople();
  follow();
}

function refreshPeople() {
  people.refresh().catch((error) => toast(error.message, "bad"));
}

byId("enrol").addEventListener("click", () => openEnrolment(people));
document.querySelector(".skip").addEventListener("click", (event) => {
  event.preventDefault();
  document.querySelector(".view:not([hidden]) main").focus();
});
addEventListener("hashchange", route);
refreshPeople();
linkState("opening");
route();
