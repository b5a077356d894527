"""Real English words: a dictionary to draw names and values from, and common words of the news.

The 2001 and 2003 papers take words from "a common dictionary". The lists that systems and packages
bring differ from machine to machine, so ours is here: every machine draws the same words.
The 2006 paper takes the 200 most common meaningful terms of a corpus that is not available; NEWS,
most frequent first, stands in for it. Always: no list holds a word twice, all are lower case ASCII.
"""

from __future__ import annotations

_NEWS = """
government president market people company state police country million world official minister
group bank party city report price trade leader percent court force national security week month
political economic election power policy war case economy plan system public member service
business industry health law program issue foreign military attack meeting support rate
international deal union share investor worker family school car team game home water oil energy
money tax budget deficit growth interest fund stock exchange dollar currency export import board
committee council congress senate house republic democrat opposition campaign vote poll candidate
mayor governor ambassador talks peace treaty agreement border troops soldier army rebel militant
bomb explosion victim hospital doctor patient drug disease virus vaccine research science
university student teacher education history church religion culture film music television
newspaper internet computer software technology network phone satellite space aircraft airline
airport flight pilot crash accident train road traffic ship port storm flood earthquake fire
weather temperature climate forest river land farm farmer food crop wheat corn cattle factory
plant steel gold mine coal gas pipeline nuclear reactor weapon missile test inspection sanction
embargo protest strike demonstration prison prisoner trial judge lawyer charge crime murder
robbery fraud investigation evidence witness verdict
"""

_DICTIONARY = """
ability able about above abroad absence absolute absorb abstract abundant academy accent accept
access accident account accurate achieve acid acquire across action active actor actual adapt
address adequate adjust admire admit adopt adult advance advantage adventure advice afford afraid
afternoon again against agency agenda agent agree agriculture ahead airplane alarm album alcohol
alert alien alive allow almost alone along alphabet already also altar alter although aluminum
always amateur amazing ambition amount ample amuse analysis ancestor anchor ancient angel anger
angle animal ankle anniversary announce annual another answer antenna anxiety anybody apart
apartment apologize apparent appear appetite apple application appoint appreciate approach
approval april apron arch architect archive area arena argue argument arise arithmetic armchair
around arrange arrest arrive arrow article artificial artist ascend ashamed aside asleep aspect
assemble assembly assert asset assist associate assume assure astonish athlete atlas atmosphere
atom attach attempt attend attention attic attitude attract auction audience august aunt author
authority autumn available avenue average avoid awake award aware away awful awkward baby bachelor
back background backpack bacon bacteria badge baggage bake balance balcony ball ballet balloon
ballot bamboo banana band bandage banner bargain bark barley barn barrel barrier baseball basement
basic basin basket bath bathroom battery battle beach beacon bead beam bean bear beard beast beat
beautiful beauty because become bedroom beef before begin behave behavior behind belief believe
bell belong beloved below belt bench bend beneath benefit berry beside best better between
beverage beyond bicycle bigger billion bind biography biology bird birth birthday biscuit bitter
black blade blame blanket blast bleed blend bless blind block blood blossom blouse blow blue board
boast boat body boil bold bolt bone bonus book border borrow boss botanical both bother bottle
bottom bounce boundary bowl box boyfriend bracelet brain brake branch brand brass brave bread
breakfast breath breathe breed breeze brick bride bridge brief bright brilliant bring broad
broadcast broken bronze brook broom brother brown brush bubble bucket buckle buffalo build
building bulb bullet bundle burden bureau burn burst bury bush busy butcher butter butterfly
button buyer cabbage cabin cabinet cable cafeteria cage cake calcium calculate calendar calf call
calm camel camera camp canal cancel cancer candle candy cannon canoe canvas capable capacity
capital captain capture carbon card cardboard career careful cargo carpenter carpet carriage
carrot carry cartoon carve cash castle casual catalog catch category cathedral cause caution cave
ceiling celebrate cell cement center central century ceramic ceremony certain certificate chain
chair chalk challenge chamber champion chance change channel chapter character charity charm chart
chase cheap check cheek cheer cheese chemical chemistry cherry chess chest chicken chief child
childhood chimney chin chocolate choice choir choose chorus cigar cinema circle circuit
circumstance circus citizen civil civilization claim clarify class classic classroom clay clean
clear clerk clever client cliff climb clinic clock close closet cloth clothing cloud clover club
clue clumsy cluster coach coast coat cobweb cocoa coconut code coffee coffin coin cold collapse
collar colleague collect collection college collision colony color column comb combine comedy
comfort comic command comment commerce commission commit common communicate community companion
compare comparison compass compete competition complain complete complex component compose
composition compound comprehend compromise concentrate concept concern concert conclude concrete
condition conduct conductor conference confess confidence confirm conflict confuse congratulate
connect conquer conscience conscious consent consequence consider consist constant constitution
construct consult consume contact contain contemporary content contest context continent continue
contract contradict contrast contribute control convenient convention conversation convert
convince cook cookie cool cooperate copper copy coral cord core corner corporate correct
correspond corridor cosmetic cost costume cottage cotton couch cough could counsel count counter
couple courage course courtesy cousin cover coward cradle craft crane crawl crazy cream create
creature credit creek creep crew cricket crisis crisp criteria critic crocodile cross crowd crown
crucial cruel cruise crumb crush crystal cube cucumber cupboard cure curious curl current curtain
curve cushion custom customer cycle cylinder daily dairy daisy damage damp dance danger daring
dark darling data date daughter dawn daylight dead deaf dear death debate debt decade decay
deceive december decent decide deck declare decline decorate decrease deep deer defeat defend
define definite degree delay delegate delicate delicious delight deliver demand democracy dense
dentist deny depart department depend deposit depress depth deputy derive descend describe desert
deserve design desire desk despair desperate dessert destination destroy detail detect detective
determine develop device devil devote dialect diamond diary dictate dictionary diet differ
difference different difficult digest digital dignity dilemma dimension diminish dinner diploma
direct direction dirt disagree disappear disappoint disaster discipline discount discover
discovery discuss disguise dish dismiss display dispute dissolve distance distinct distinguish
distribute district disturb ditch dive divide divine division divorce document dolphin domain
domestic dominate donate donkey donor door dose double doubt dough dove downtown dozen draft drag
dragon drain drama draw drawer dream dress drift drill drink drive driver drop drown drum dry duck
duke dull dumb durable during dusk dust duty dwarf dwell dynamic eager eagle early earn earnest
earth easel east easy eccentric echo eclipse ecology economy edge edition educate effect efficient
effort eight either elaborate elastic elbow elder elect electric electron elegant element elephant
elevate elevator eleven eliminate elsewhere embarrass embassy embrace emerge emergency emigrate
emotion emperor emphasis empire employ employee empty enable enchant encounter encourage
encyclopedia endless endure enemy engage engine engineer enjoy enormous enough ensure enter
enterprise entertain enthusiasm entire entrance envelope environment envy episode equal equation
equator equip equipment erase errand error escape especially essay essence essential establish
estate estimate eternal ethics evaluate even evening event eventually every everyday everywhere
evident evil evolution exact exaggerate examine example exceed excellent except excess excite
exclude excuse execute executive exercise exhaust exhibit exile exist exit exotic expand expect
expedition expense experience experiment expert explain explore exposure express extend extent
exterior external extinct extra extraordinary extreme eyebrow fabric fabulous face facility fact
factor faculty fade fail faint fair fairy faith falcon fall false fame familiar famous fancy
fantastic fare farewell fashion fasten fatal father fatigue faucet fault favor favorite fear feast
feather feature february federal feeble feed feel fellow female fence ferry fertile festival fetch
fever fiber fiction fiddle field fierce fifteen fifty fight figure file fill filter final finance
find finger finish firm first fish fisherman fist five flag flame flash flat flavor flesh flexible
float flock floor flour flow flower fluid flute focus fold folk follow fond foolish football
footprint forbid forecast forehead forever forget forgive fork formal format former formula fort
fortnight fortunate fortune forty forward fossil foundation fountain fourteen fowl fragile
fragment fragrant frame framework frank freeze freight frequent fresh friction friday friend
frighten frog front frontier frost frozen fruit frustrate fuel fulfill function fundamental
funeral funny fur furnace furniture further future gadget gain galaxy gallery gallon gallop gamble
gap garage garbage garden garlic garment gasoline gate gather gauge gaze gear gender gene general
generate generation generous genius gentle gentleman genuine geography geology geometry gesture
ghost giant gift ginger giraffe girl give glacier glad glance glass gleam glide glimpse global
globe gloomy glory glove glow glue goal goat goddess golden goodbye goose gorilla gossip gown
grace grade gradual graduate grain grammar grand grandfather grandmother granite grant grape graph
grasp grass grateful gravel gravity gray great green greet grief grill grind grocery ground grow
guarantee guard guess guest guidance guide guilty guitar gulf gymnasium habit habitat hair
hairdresser half hall hammer hammock hamper hand handbag handicap handkerchief handle handsome
handwriting hang happen happiness happy harbor hard hardly hardware harm harmony harness harsh
harvest haste hatch hate haul haunt hawk hazard headache heading headline headquarters heal heap
hear heart heat heaven heavy hedge heel height heir helicopter helmet help hemisphere herb herd
here heritage hero hesitate hidden hide high highlight highway hike hill hint hire historian hit
hobby hockey hold hole holiday hollow holy homework honest honey honor hook hope horizon horn
horrible horse horseback hospitality host hostile hotel hour household however huge human humble
humid humor hundred hunger hungry hunt hurdle hurricane hurry hurt husband hydrogen hymn
hypothesis iceberg icicle idea ideal identical identify identity idle ignorance ignore illegal
illness illusion illustrate image imagine imitate immediate immense immigrant immune impact
impatient imperial implement imply important impose impossible impress improve impulse inch
incident include income increase incredible indeed independent index indicate indirect individual
indoor induce infant infect inferior infinite influence inform information ingredient inhabit
inherit initial initiative injure injury inner innocent innovation inquire insect insert inside
insist inspect inspire install instance instant instead instinct institute instruct instrument
insult insurance integrate intellect intelligent intend intense intention interact interfere
interior internal interpret interrupt interval intimate introduce invade invent invention invest
invisible invite involve iron irony irrigate island isolate item ivory jacket jail january jar
jasmine jaw jazz jealous jeans jelly jewel jewelry job join joint joke journal journey joy juice
july jump junction june jungle junior jury justice justify juvenile kangaroo keen keep kennel
kettle keyboard kidney kilogram kilometer kind kindergarten kindness king kingdom kiss kitchen
kite kitten knee kneel knife knight knit knock knot know knowledge label labor laboratory lace
lack ladder lady lagoon lake lamb lamp landlord landscape lane language lantern large laser last
late later latitude laugh laughter launch laundry lawn layer lazy lead leaf league leak lean leap
learn lease least leather leave lecture left legacy legal legend legislation leisure lemon lend
length lens leopard less lesson letter lettuce level lever liberal liberty library license lick
life lifetime lift light lightning like lily limb limit limp line linen link lion liquid list
listen literal literature litter little live liver lizard load loaf loan lobby lobster local
locate location lock locomotive lodge logic lonely long longitude look loop loose lord lose loss
lottery loud lounge love lovely lover lower loyal luck luggage lumber lunch lung luxury lyric
machine machinery magazine magic magnet magnificent magnitude maid mail main maintain major
majority make male mammal manage manager mandate manner mansion manual manufacture manuscript many
maple marathon marble march margin marine mark marriage marry marsh marvel mask mass master match
mate material mathematics matter mattress mature maximum maybe meadow meal mean meanwhile measure
meat mechanic mechanism medal media medicine medieval medium melody melon melt membrane memorial
memory menace mend mental mention menu merchant mercury mercy mere merge merit merry message metal
meteor method metric microphone microscope middle midnight might migrate mild mile milk mill mind
mineral minimum minor minority mint minute miracle mirror miserable misery miss mission mist
mistake mix mixture mobile mode model moderate modern modest modify module moisture molecule
moment monday monitor monkey monster monument mood moon moral more morning mortal mortgage mosaic
mosquito most mother motion motive motor motorcycle mountain mouse mouth move movement movie much
mud multiple multiply municipal muscle museum mushroom musician must mustard mutual mystery myth
nail naked name napkin narrate narrow nation native natural nature navigate navy near nearby neat
necessary neck necklace need needle negative neglect negotiate neighbor neighborhood neither
nephew nerve nervous nest neutral never nevertheless next nice niece night nightmare nine nitrogen
noble nobody noise nominate none noodle noon normal north nose notable notch note notebook nothing
notice notion novel november nowhere number numerous nurse nursery nut nutrition oak oasis oath
obey object objective obligation observe obstacle obtain obvious occasion occupation occupy occur
ocean october octopus odd offend offer office officer often olive omit once onion only open opera
operate operation opinion opponent opportunity oppose opposite optical optimism option oral orange
orbit orchard orchestra order ordinary organ organic organize orient origin original ornament
orphan ostrich other otherwise ought ounce outcome outdoor outer outfit outlet outline output
outside outstanding oval oven over overcome overlook overnight overseas owe owl own owner oxygen
oyster pace pack package packet paddle page pail pain paint painter painting pair palace pale palm
pamphlet panda panel panic panther papa paper parachute parade paradise paragraph parallel pardon
parent park parliament parrot part partial participate particle particular partner passage
passenger passion passive passport past pasta paste pastry patch path patience patrol pattern
pause pavement payment peach peacock peak peanut pear pearl peasant peculiar pedal pedestrian peel
pen penalty pencil penguin peninsula pension pepper perceive perfect perform perfume perhaps
period permanent permission permit persist person personal personality perspective persuade pet
petal petroleum pharmacy phase phenomenon philosophy photo photograph phrase physical physician
physics piano pick pickle picnic picture piece pierce pigeon pile pill pillow pinch pine pineapple
pink pint pioneer pipe pirate pitch pity pizza place plain planet plank plaster plastic plate
platform play player playground pleasant please pleasure pledge plenty plot plow plug plum plumber
plunge plural pocket poem poet poetry point poison polar pole polish polite politics pollution
pond pony pool poor popcorn popular population porcelain porch portable porter portion portrait
position positive possess possible post postcard poster postpone potato potential pottery pound
pour poverty powder powerful practical practice praise pray prayer precede precious precise
predict prefer pregnant prejudice preliminary prepare presence present preserve presidential
pressure prestige presume pretend pretty prevail prevent previous pride priest primary prime
primitive prince princess principal principle print prior priority privacy private privilege prize
probable problem procedure proceed process procession produce product production profession
professional professor profile profit profound progress prohibit project promise promote prompt
pronounce proof propeller proper property proportion proposal propose prospect protect protein
proud prove proverb provide province provoke psychology publish pudding pull pulse pump pumpkin
punch punctual punish pupil puppet puppy purchase pure purple purpose purse pursue push puzzle
pyramid quaint qualify quality quantity quarrel quarry quarter quartz queen quest queue quick
quiet quilt quit quite quiz quota quote rabbit raccoon race racket radar radiate radical radio
radish radius raft rage rail railroad railway rain rainbow raise raisin rally ranch random range
rank rapid rare rarely raspberry rather ratio rational rattle raven razor reach react reaction
reader ready real realistic reality realize rear reason rebuild recall receipt receive recent
reception recipe recite reckon recognize recommend record recover recreation recruit rectangle
recycle reduce refer reference refine reflect reform refresh refrigerator refuge refund refuse
regard regime region register regret regular regulate rehearse reign reject relate relation
relative relax release relevant reliable relief relieve religious reluctant rely remain remark
remedy remember remind remote remove renaissance render renew rent repair repeat replace reply
represent reproduce reptile reputation request require rescue resemble reserve reservoir reside
resign resist resolve resort resource respect respond response responsible rest restaurant
restless restore restrict result resume retail retain retire retreat return reunion reveal revenge
revenue reverse review revise revive revolution reward rhinoceros rhyme rhythm ribbon rice rich
riddle ride ridge ridiculous rifle rigid ring rinse ripe ripple rise risk ritual rival roast robin
robot robust rock rocket role roll romance romantic roof room rooster root rope rose rotate rotten
rough round route routine row royal rubber rubbish ruin rule ruler rumor rural rush rust sack
sacred sacrifice saddle safari safe safety sail sailor saint sake salad salary sale salmon salt
salute same sample sand sandal sandwich sapphire sardine satisfy saturday sauce saucer sausage
save savings scale scan scandal scar scarce scare scarf scatter scene scenery scent schedule
scheme scholar scholarship scientist scissors scold scoop scope score scorn scorpion scout
scramble scrap scratch scream screen screw script scroll sculptor sculpture seal search season
seat second secret secretary section sector secure seed seek seem segment seize seldom select self
sell semester senior sensation sense sensible sensitive separate september sequence serene
sergeant serial series serious sermon serpent servant session settle settlement seven several
severe sew shade shadow shake shallow shame shampoo shape shark sharp shatter shave shed sheep
sheet shelf shell shelter shepherd sheriff shield shift shine shirt shiver shock shoe shoot shop
shore short shortage should shoulder shout shovel show shower shrimp shrink shrub shuffle shut
shuttle shy sibling sick side sidewalk siege sigh sight sign signal signature significant silence
silent silk silly silver similar simple simulate simultaneous since sincere sing singer single
sink sister situation six size skate skeleton sketch skill skin skip skirt skull slave sleep
sleeve slender slice slide slight slim slip slipper slogan slope slow small smart smash smell
smile smoke smooth snail snake snap snow snowflake soap soccer social society sock sofa soft soil
solar sole solemn solid solitary solution solve some somebody song soon sophisticated sore sorrow
sorry sort soul sound soup sour source south southern souvenir spade spaghetti spare spark sparrow
speak spear special species specific specimen spectacle spectrum speech speed spell spend sphere
spice spider spill spin spinach spine spiral spirit spit splash splendid split spoil sponge
sponsor spoon sport spot spray spread spring sprinkle square squash squeeze squirrel stable
stadium staff stage stain stair stake stale stamp stand standard star stare start starve station
stationery statistics statue status stay steady steak steal steam steep stem step stereo stern
steward stick sticky stiff still stimulate sting stir stitch stomach stone stool stop storage
store story stove straight strange stranger strategy straw strawberry stream street strength
stress stretch strict string strip stripe strong structure struggle stubborn studio study stuff
stumble stupid sturdy style subject submarine submit substance substitute subtle suburb subway
succeed success sudden suffer sufficient sugar suggest suit suitable suitcase sum summary summer
summit summon sunday sunflower sunrise sunset sunshine superb superior supermarket supper supply
suppose supreme surface surgeon surgery surname surplus surprise surrender surround survey survive
suspect suspend sustain swallow swamp swan swarm sweat sweater sweep sweet swell swift swim swing
switch sword syllable symbol sympathy symphony symptom syrup table tablet tackle tadpole tail
tailor take tale talent talk tall tame tangerine tank tap tape target task taste tavern taxi
teapot tear tease technical technique tedious telegraph telephone telescope tell temper temple
temporary tempt tenant tend tender tennis tension tent term terminal terrace terrible terrific
territory terror text textbook textile texture thank theater theme theory therapy there therefore
thermometer thick thief thigh thin thing think third thirst thirteen thirty thorn thorough though
thought thousand thread threat three threshold thrill throat throne through throughout throw thumb
thunder thursday ticket tickle tide tidy tiger tight tile timber time timid tiny tired tissue
title toast tobacco today toddler together toilet tolerate tomato tomorrow tone tongue tonight
tool tooth topic torch tornado tortoise torture total touch tough tour tourist tournament toward
towel tower town toy trace track tractor tradition tragedy trail trainer transfer transform
transit translate transmit transparent transport trap travel tray treasure treat treatment tree
tremble tremendous trend triangle tribe trick trigger trim trip triumph trivial tropical trouble
trousers truck true trumpet trunk trust truth tuesday tulip tumble tuna tune tunnel turkey turn
turtle tutor twelve twenty twice twilight twin twist type typewriter typical ugly ultimate
umbrella unable uncle under undergo underground underline understand undertake underwater
underwear undo uneasy unfair unfold unhappy unicorn uniform unique unit unite unity universal
universe unknown unless unlike until unusual upper upright upset upstairs urban urge urgent usage
useful usher usual utensil utility utmost vacant vacation vacuum vague vain valid valley valuable
value valve vanilla vanish vapor variable variety various vast vault vegetable vegetarian vehicle
veil vein velvet vendor venture verb verify verse version vertical vessel veteran veterinarian
vibrate vice vicious victory video view vigor village villain vine vinegar vineyard violate
violence violet violin virtual virtue visible vision visit visitor visual vital vitamin vivid
vocabulary voice volcano volleyball volume voluntary volunteer vowel voyage vulnerable vulture
wage wagon waist wait waiter waitress walk wall wallet walnut walrus wander want ward wardrobe
warehouse warm warn warrior wash wasp waste watch waterfall watermelon wave wealth wear weave
wedding wednesday weed weekend weep weigh weight welcome welfare west western whale whatever wheel
wheelchair when whenever where whether which while whip whisper whistle white whole wicked wide
widow width wild wilderness wildlife willing willow wind window windshield wine wing winner winter
wipe wire wisdom wise wish witch withdraw wither within without wolf woman wonder wonderful wood
wooden wool word work workshop worm worry worse worship worth wound wrap wreath wreck wrestle
wrinkle wrist write writer wrong yacht yard yarn yawn year yeast yellow yesterday yield yogurt
young youngster youth zebra zero zigzag zinc zipper zone zoology zucchini
"""

NEWS = tuple(_NEWS.split())
DICTIONARY = tuple(_DICTIONARY.split())
