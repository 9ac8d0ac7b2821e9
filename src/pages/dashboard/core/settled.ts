import { useEffect, useState } from "preact/hooks";

/** Pause after which typing counts as finished. */
const PAUSE_MS = 250;

/** A text after the user has stopped typing, so that not every letter sends a request. */
export function useSettled(text: string): string {
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), PAUSE_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return settled;
}
