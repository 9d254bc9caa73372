// The replay of a walk: one clock in ns of the memory's time for both places, moved by playing or by steps.

const PLACES = ["near", "far"];
const SECONDS = 6; // that a walk should take to play, about
const MOST_TICKS = 400;

function nanoseconds(value) {
  return `${value.toLocaleString("en", { maximumFractionDigits: value < 100 ? 1 : 0 })} ns`;
}

function plural(count, word) {
  return `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "s"}`;
}

// The first of 1, 2, 5, 10, ... that is not below `value`.
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(Math.max(value, 1)));
  return [1, 2, 5, 10].map((step) => step * power).find((step) => step >= value);
}

class Replay {
  constructor(searches) {
    this.searches = searches;
    this.part = (id) => document.getElementById(id);
    this.calm = window.matchMedia("(prefers-reduced-motion: reduce)");
    this.playing = false;
    this.time = 0;
    this.fill(this.part("search"), searches.map((search) => this.searchName(search)));
    this.listen();
    this.part("replay").hidden = false;
    this.openSearch(0);
  }

  searchName(search) {
    const file = search.file.split("/").pop();
    return `${search.name} (${search.algorithm}, ${plural(search.nodes.id.length, "node")}; ${file})`;
  }

  fill(select, names) {
    select.replaceChildren(...names.map((name, index) => new Option(name, index)));
  }

  listen() {
    const on = (id, event, act) => this.part(id).addEventListener(event, act);
    on("search", "change", () => this.openSearch(Number(this.part("search").value)));
    on("walk", "change", () => this.openWalk(Number(this.part("walk").value)));
    on("previous-walk", "click", () => this.openWalk(this.index - 1));
    on("next-walk", "click", () => this.openWalk(this.index + 1));
    on("restart", "click", () => this.jump(0));
    on("back", "click", () => this.step(-1));
    on("forward", "click", () => this.step(1));
    on("play", "click", () => this.toggle());
    on("replay", "keydown", (event) => this.key(event));
  }

  key(event) {
    // A list keeps its own keys, a button its space, and a frame that scrolls its arrows.
    const on = event.target;
    if (on instanceof HTMLSelectElement || event.ctrlKey || event.altKey || event.metaKey) return;
    if (event.key === " " && on instanceof HTMLButtonElement) return;
    if (on.classList.contains("wide") && event.key !== " ") return;
    const acts = {
      " ": () => this.toggle(),
      ArrowRight: () => this.step(1),
      ArrowLeft: () => this.step(-1),
      Home: () => this.jump(0),
      End: () => this.jump(this.end),
    };
    if (!(event.key in acts)) return;
    event.preventDefault();
    acts[event.key]();
  }

  openSearch(index) {
    this.search = this.searches[index];
    this.trees = {};
    for (const place of PLACES) this.trees[place] = new Tree(this.part(`tree-${place}`), this.search);
    this.fill(this.part("walk"), this.search.walks.map((walk) => this.walkName(walk)));
    const reads = this.search.walks.map((walk) => walk.places.near.nodes.length);
    this.openWalk(reads.indexOf(Math.max(...reads)));
  }

  walkName(walk) {
    const { near, far } = walk.places;
    const times = `near ${nanoseconds(near.total)}, far ${nanoseconds(far.total)}`;
    return `event ${walk.event}: ${walk.program}, ${plural(near.nodes.length, "read")}, ${times}`;
  }

  openWalk(index) {
    this.pause();
    this.index = index;
    this.walk = this.search.walks[index];
    this.part("walk").value = index;
    this.part("previous-walk").disabled = index === 0;
    this.part("next-walk").disabled = index === this.search.walks.length - 1;
    this.end = Math.max(...PLACES.map((place) => this.walk.places[place].total));
    const moments = PLACES.flatMap((place) => [...this.walk.places[place].times, this.walk.places[place].total]);
    this.moments = [...new Set([0, ...moments])].sort((a, b) => a - b);
    for (const place of PLACES) {
      this.trees[place].showEvent(this.walk.event);
      this.trees[place].reveal(this.walk.start);
      this.drawLane(place);
    }
    this.showQuestion();
    this.chooseSpeed();
    this.jump(0);
  }

  drawLane(place) {
    const { times, total } = this.walk.places[place];
    const track = this.part(`lane-${place}`).querySelector(".track");
    const every = Math.ceil(times.length / MOST_TICKS);
    const ticks = [...times.filter((_, index) => index % every === 0).map((time) => [time, "tick"]), [total, "finish"]];
    track.replaceChildren(
      ...ticks.map(([time, kind]) => {
        const tick = document.createElement("span");
        tick.className = kind;
        tick.style.left = `${(100 * time) / this.end}%`;
        return tick;
      }),
      track.querySelector(".marker"),
    );
  }

  showQuestion() {
    const { walk } = this;
    const badge = (kind, text) => {
      const made = document.createElement("span");
      made.className = `badge ${kind}`;
      made.textContent = text;
      return made;
    };
    const badges = [];
    if (walk.check === "none") badges.push(badge("unchecked", `unchecked: ${walk.reason ?? "no reason given"}`));
    else badges.push(walk.right ? badge("right", "✓ right") : badge("wrong", "✗ wrong"));
    if (walk.source === "lookahead") badges.push(badge("lookahead", "look-ahead"));
    else if (walk.check !== "none") badges.push(badge("derived", `derived${walk.source ? `: ${walk.source}` : ""}`));
    const expected = document.createElement("span");
    expected.textContent = ` ${walk.check === "none" ? walk.program : walk.check}: expected ${walk.expected}`;
    this.part("question").replaceChildren(...badges, expected);
  }

  chooseSpeed() {
    const usual = roundUp(this.end / SECONDS);
    const speeds = [...new Set([10, 4, 2, 1, 0.5, 0.2].map((part) => roundUp(usual / part)))];
    const select = this.part("speed");
    select.replaceChildren(...speeds.map((speed) => new Option(nanoseconds(speed), speed)));
    select.value = usual;
  }

  toggle() {
    if (this.playing) return this.pause();
    if (this.time >= this.end) this.time = 0;
    this.playing = true;
    this.showPlaying();
    let before = performance.now();
    const frame = (now) => {
      if (!this.playing) return;
      this.time = Math.min(this.end, this.time + (Math.max(now - before, 0) / 1000) * Number(this.part("speed").value));
      before = now;
      this.show();
      if (this.time >= this.end) this.pause();
      else requestAnimationFrame(frame);
    };
    requestAnimationFrame(frame);
  }

  pause() {
    if (!this.playing) return;
    this.playing = false;
    this.showPlaying();
    this.say();
  }

  showPlaying() {
    const button = this.part("play");
    button.setAttribute("aria-pressed", this.playing);
    button.querySelector("[aria-hidden]").textContent = this.playing ? "❚❚" : "▶";
    button.querySelector(".word").textContent = this.playing ? "Pause" : "Play";
  }

  jump(time) {
    this.pause();
    this.time = time;
    this.show();
    this.say();
  }

  // To the next or the last moment at which either place does something.
  step(way) {
    const ahead = this.moments.filter((moment) => (way > 0 ? moment > this.time : moment < this.time));
    if (ahead.length) this.jump(way > 0 ? ahead[0] : ahead[ahead.length - 1]);
  }

  show() {
    // Without motion the picture changes only when a place does something.
    const past = this.moments.filter((moment) => moment <= this.time);
    const time = this.playing && this.calm.matches ? past[past.length - 1] : this.time;
    for (const place of PLACES) this.showPlace(place, time);
    const clock = this.part("clock");
    clock.textContent = nanoseconds(time);
    clock.dataset.ns = time;
  }

  showPlace(place, time) {
    const { nodes, times, total } = this.walk.places[place];
    const reads = times.filter((moment) => moment <= time).length;
    const done = time >= total;
    const lane = this.part(`lane-${place}`);
    lane.querySelector(".marker").style.left = `${(100 * Math.min(time, total)) / this.end}%`;
    lane.querySelector(".state").textContent = this.state(place, reads, done);
    if (lane.dataset.reads !== String(reads) || lane.dataset.done !== String(done) || reads === 0) {
      lane.dataset.reads = reads;
      lane.dataset.done = done;
      this.trees[place].showReads(nodes.slice(0, reads));
      this.trees[place].reveal(nodes[reads - 1]);
      this.part(`at-${place}`).textContent = this.whereabouts(place, reads, done);
    }
  }

  state(place, reads, done) {
    const { nodes, total, helped } = this.walk.places[place];
    if (done) return `verdict after ${nanoseconds(total)}`;
    return helped ? `answered by ${helped}` : `${reads} of ${plural(nodes.length, "read")}`;
  }

  whereabouts(place, reads, done) {
    const { nodes, found } = this.walk.places[place];
    if (done) return found;
    if (reads === 0) return "";
    const node = nodes[reads - 1];
    return node === null ? "at a record of no node" : `at ${this.trees[place].describe(node)}`;
  }

  // What happened, for a reader who does not see it.
  say() {
    const lines = PLACES.map((place) => {
      const lane = this.part(`lane-${place}`);
      return `${place}: ${lane.querySelector(".state").textContent} ${this.part(`at-${place}`).textContent}`;
    });
    this.part("status").textContent = `At ${nanoseconds(this.time)}. ${lines.join(". ")}`;
  }
}

// On paper every table is open.
const closed = [];
window.addEventListener("beforeprint", () => {
  for (const details of document.querySelectorAll("details:not([open])")) {
    details.open = true;
    closed.push(details);
  }
});
window.addEventListener("afterprint", () => {
  for (const details of closed.splice(0)) details.open = false;
});

const searches = JSON.parse(document.getElementById("search-data").textContent);
if (searches.length) new Replay(searches);
