/** Where programs of the pages run: Node, which most readers have, or Bun on a machine without it. */
export const NODE_OR_BUN = Bun.which("node") ?? process.execPath;
