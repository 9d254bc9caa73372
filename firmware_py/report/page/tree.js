// The tree of a search as SVG: depth to the right, leaves one below the other in order of creation.

const SVG_NAMESPACE = "http://www.w3.org/2000/svg";
const COLUMN = 44;
const ROW = 18;
const MARGIN = 14;
const RADIUS = 5;
const LABEL_CHARACTERS = 26;

function svgElement(name, attributes) {
  const made = document.createElementNS(SVG_NAMESPACE, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// Column and row of every node, and the number of rows.
function treeLayout(parents) {
  const children = parents.map(() => []);
  const roots = [];
  parents.forEach((parent, node) => (parent === null ? roots : children[parent]).push(node));
  const column = new Array(parents.length).fill(0);
  const row = new Array(parents.length).fill(0);
  let rows = 0;
  // Children have higher numbers than their parents: no recursion, whatever the depth.
  parents.forEach((parent, node) => {
    if (parent !== null) column[node] = column[parent] + 1;
  });
  const waiting = [...roots].reverse();
  while (waiting.length) {
    const node = waiting.pop();
    if (children[node].length === 0) row[node] = rows++;
    waiting.push(...[...children[node]].reverse());
  }
  for (let node = parents.length - 1; node >= 0; node--) {
    const below = children[node];
    if (below.length) row[node] = (row[below[0]] + row[below[below.length - 1]]) / 2;
  }
  return { column, row, rows, leaf: children.map((below) => below.length === 0) };
}

class Tree {
  constructor(container, search) {
    this.container = container;
    this.nodes = search.nodes;
    this.event = 0;
    const layout = treeLayout(this.nodes.parent);
    this.x = layout.column.map((column) => MARGIN + column * COLUMN);
    this.y = layout.row.map((row) => MARGIN + row * ROW);
    const width = Math.max(0, ...this.x) + 2 * MARGIN + LABEL_CHARACTERS * 6.5;
    const height = Math.max(1, layout.rows) * ROW + MARGIN;
    const picture = svgElement("svg", { width, height, viewBox: `0 0 ${width} ${height}`, "aria-hidden": "true" });
    this.edges = this.nodes.parent.map((parent, node) => {
      if (parent === null) return null;
      const middle = this.x[parent] + COLUMN / 2;
      const path = `M${this.x[parent]} ${this.y[parent]}H${middle}V${this.y[node]}H${this.x[node]}`;
      return picture.appendChild(svgElement("path", { class: "edge", d: path }));
    });
    this.groups = this.nodes.id.map((id, node) => this.drawNode(picture, id, node, layout.leaf[node]));
    this.marked = [];
    container.replaceChildren(picture);
  }

  drawNode(picture, id, node, leaf) {
    const group = svgElement("g", { class: "node", transform: `translate(${this.x[node]} ${this.y[node]})` });
    group.append(
      svgElement("circle", { class: "halo", r: RADIUS + 3 }),
      svgElement("circle", { class: "dot", r: RADIUS }),
      svgElement("path", { class: "cross", d: "M-3-3 3 3M3-3-3 3" }),
    );
    group.append(svgElement("title", {}));
    if (leaf) {
      const label = svgElement("text", { x: RADIUS + 6, y: 4 });
      const text = this.nodes.label[node];
      label.textContent = text.length > LABEL_CHARACTERS ? `${text.slice(0, LABEL_CHARACTERS - 1)}…` : text;
      group.append(label);
    }
    return picture.appendChild(group);
  }

  isDead(node) {
    return this.nodes.dead[node] !== null && this.nodes.dead[node] <= this.event;
  }

  describe(node) {
    const words = this.nodes.label[node];
    const end = this.isDead(node) ? ` (dead end: ${this.nodes.reason[node]})` : "";
    return `node ${this.nodes.id[node]}${words ? `: ${words}` : ""}${end}`;
  }

  // The tree as it was at an event of the trace.
  showEvent(event) {
    this.clear();
    this.event = event;
    const untried = new Map();
    for (const [at, node, count] of this.nodes.untried) if (at <= event) untried.set(node, count);
    this.groups.forEach((group, node) => {
      const made = this.nodes.created[node] <= event;
      const dead = this.isDead(node);
      group.classList.toggle("future", !made);
      group.classList.toggle("dead", made && dead);
      group.classList.toggle("open", made && !dead && (untried.get(node) ?? 0) > 0);
      group.querySelector("title").textContent = this.describe(node);
      this.edges[node]?.classList.toggle("future", !made);
    });
  }

  clear() {
    for (const node of this.marked) this.groups[node].classList.remove("visited", "current");
    this.marked = [];
  }

  // The reads so far; the last is where the walk is.
  showReads(reads) {
    this.clear();
    for (const node of reads) {
      if (node === null) continue;
      this.groups[node].classList.add("visited");
      this.marked.push(node);
    }
    const current = reads.length ? reads[reads.length - 1] : null;
    if (current !== null) this.groups[current].classList.add("current");
  }

  // Bring a node into sight, inside the tree's own frame only.
  reveal(node) {
    if (node === null || node === undefined) return;
    const { clientWidth, clientHeight, scrollLeft, scrollTop } = this.container;
    const near = 40;
    if (this.y[node] < scrollTop + near || this.y[node] > scrollTop + clientHeight - near) {
      this.container.scrollTop = this.y[node] - clientHeight / 2;
    }
    if (this.x[node] < scrollLeft + near || this.x[node] > scrollLeft + clientWidth - near) {
      this.container.scrollLeft = this.x[node] - clientWidth / 2;
    }
  }
}
