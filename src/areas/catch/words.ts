/** The words that bucket ids are made of. A word may be added; taking one away changes no bucket that exists. */

/** At least 200 adjectives. */
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
