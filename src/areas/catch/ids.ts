import type { Ids } from "../../kernel/ids.ts";

/** Numbers of six digits. */
const NUMBER_MIN = 100_000;
const NUMBERS = 900_000;

/** A random bucket id such as `brave-otter-314159`: easy to read out, and hard enough to guess for a public path. */
export function newBucketId(ids: Ids): string {
  return `${pick(ids, ADJECTIVES)}-${pick(ids, NOUNS)}-${NUMBER_MIN + below(ids, NUMBERS)}`;
}

function pick(ids: Ids, words: readonly string[]): string {
  return words[below(ids, words.length)] ?? "";
}

/** A number below `limit`, from 48 random bits: the bias of the remainder is negligible. */
function below(ids: Ids, limit: number): number {
  return Buffer.from(ids.bytes(6)).readUIntBE(0, 6) % limit;
}

/**
 * An event's number is the epoch millisecond of its receipt, with room for this many events within it. Beyond that, or
 * when the wall clock is set back, numbers just go on rising. They stay exact integers until the year 2248.
 */
const EVENTS_PER_MS = 1024;
/** Characters of a number below 2^55 in base 32. */
const DIGITS = 11;
const EVENT_ID = /^evt_([0-9a-v]{11})$/;

/** Gives out the numbers of events. No number is given twice, whatever becomes of its event. */
export class EventSequence {
  /** `last`: the number given last; at first the largest that is stored. */
  constructor(public last: number) {}

  next(now: number): number {
    this.last = Math.max(this.last + 1, now * EVENTS_PER_MS);
    return this.last;
  }
}

/** The text of a number. Texts sort as their numbers do, and so by time of receipt. */
export function eventIdOf(sequence: number): string {
  return `evt_${sequence.toString(32).padStart(DIGITS, "0")}`;
}

/** The number behind an id; null for an id that is not one of ours. */
export function sequenceOf(eventId: string): number | null {
  const digits = EVENT_ID.exec(eventId)?.[1];
  if (digits === undefined) return null;
  const sequence = Number.parseInt(digits, 32);
  return Number.isSafeInteger(sequence) ? sequence : null;
}

/** At least 200 adjectives. Adding or removing a word changes no bucket that exists. */
export const ADJECTIVES: readonly string[] = `
able agile airy alert alpine amber ample ancient apt arctic ardent ashen atomic autumn awake azure
balmy basic bold brave breezy bright brisk broad bronze bubbly busy calm candid capable careful cedar
central chalky cheery chief chilly civic civil classic clean clear clever cloudy coastal comic compact
cool copper coral cosmic cosy crafty crimson crisp cubic curious curly cyan daily dapper daring dawn
deep deft dense dewy direct distant dotted dreamy dry dusky dusty eager early earnest earthy eastern
easy elegant elder electric emerald eminent endless epic equal even evergreen exact fabled fair famous
fancy fast fearless festive fine firm fleet floral fluent fluffy fond formal fresh friendly frosty
gallant gentle genuine giant gifted gilded glad gleaming global golden good graceful grand grassy great
green handy happy hardy harmonic hazel hearty hidden high hollow honest humble icy ideal indigo infinite
inland inner ivory jade jolly jovial joyful just keen kind large lasting lavender leafy level light lilac
lively local lofty long loyal lucid lucky lunar magic major maple marble mellow merry mighty mild minor
misty modern modest mossy moving narrow native neat neutral nimble noble northern novel oaken olive open
orange orderly outer pale patient peaceful pearly plain playful polar polished polite prime proper proud
pure purple quick quiet radiant rapid rare ready regal robust rosy round royal ruby rural rustic sandy
scarlet secure serene sharp shiny silent silken silver simple sincere sleek smooth snowy snug soft solar
solid southern spare spry stable starry steady still stony stout subtle sunny super sure swift tall tame
tender tidy tiny topaz tranquil trusty upper urban useful valid vast velvet verdant vibrant vivid warm
wavy western wide wild willing windy winter wise witty wooden young zesty
`
  .trim()
  .split(/\s+/);

/** At least 200 nouns. */
export const NOUNS: readonly string[] = `
acorn anchor apple arbor arch arrow ash aspen aurora badger bamboo barley basin bay beach beacon bear
beaver bell birch bison blossom boat bramble breeze brick bridge brook cabin cactus camel canal candle
canoe canyon cape castle cave cedar cello cherry cliff cloud clover coast comet compass condor coral
cottage cove crane creek crest cricket crow crystal current cypress dahlia daisy dale dawn deer delta
desert dingo dolphin dove dune eagle earth echo elk elm ember falcon fawn feather fern ferry field finch
fir fjord flame flint flute fog forest fountain fox frost galaxy garden garnet gate gecko geyser ginger
glacier glade glen gorge grain granite grape grove gull harbor harp hawk hazel heath hedge heron hill
hollow honey horizon horse ibis inlet iris island ivy jasmine jay jungle juniper kayak kelp kestrel kite
koala lagoon lake lamp lantern larch lark laurel leaf lemon lentil lily lime linden lion llama lotus lynx
magpie mango mantis maple marlin marsh marten meadow melon mesa meteor mill mint mist moon moor moose moss
moth mountain mulberry nebula nectar nest newt night nutmeg oak oasis ocean olive onyx opal orbit orca
orchard orchid oriole osprey otter owl oyster palm panda panther path peach peak pear pebble pelican
penguin peony petal pine planet plateau plum pond poplar poppy prairie prism puffin quail quartz quill
rain rapids raven reed reef ridge river robin rock rose rowan saddle sage sail salmon sand seal sequoia
shell shore sky snow sparrow spring spruce star stone stork storm stream summit sun swallow swan tapir
teal thicket thistle thunder tide tiger timber toucan trail tree trout tulip tundra turtle valley violet
walnut walrus water wave whale wheat willow wind wolf wren yarrow zebra zephyr
`
  .trim()
  .split(/\s+/);
