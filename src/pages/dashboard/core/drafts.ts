/** Forms with changes that have not been saved. */
const changed = new Set<object>();

addEventListener("beforeunload", (event) => {
  if (changed.size > 0) event.preventDefault();
});

/** Records whether a form has changes. */
export function noteDraft(form: object, isChanged: boolean): void {
  if (isChanged) changed.add(form);
  else changed.delete(form);
}

/** Asks whether changes of open forms may be lost; true without changes. */
export function mayLeave(): boolean {
  // The browser's own dialog: it must be answered before the address changes.
  if (changed.size > 0 && !confirm("Discard your changes?")) return false;
  changed.clear();
  return true;
}
