"""Common English words of up to nine letters, without inflected forms and without obscene words."""

from __future__ import annotations

COMMON = """
a aardvark abandon abandoned abbey ability able abnormal aboard abortion about above abroad absence absent absolute
absorbed abstract absurd abuse academic academy accent accept access accessory accident acclaim acclaimed accord
according account accuracy accurate accuse accused accusing achieve acid acoustic acquire acquired acre across act
action active activist activity actor actress actual actually added addict addiction addition address adios adjacent
adjust admiral admire admission admit adonis adopt adopted adoption adorable adore adult advance advanced advantage
adventure advice advise advisor advisory advocacy advocate aerial affair affairs affect affected affection affiliate
afford afraid after aftermath afternoon again against age agency agenda agent aggregate ago agony agree agreement
ahead ahem aide aikido air airborne airbus aircraft airfield airline airplane airport aisle akin alarm album alcazar
alcohol alcoholic alderman alert alexia algebra algorithm alibi alien alignment alike aline alive all alleged
allergic alley alliance allied allies allow allowance alma almighty almond almost aloha alone along alongside alpha
alphabet alpine already alright also altar alternate although altitude alumni always am amateur amazed amazing
amazon amber ambition ambitious ambulance amen amendment amends amigo ammo amnesia among amongst amount amulet
amusing an anaconda analog analysis analyze anarchy ancestry anchor ancient and angel angelic angelica anger angle
angry animal animated animation anime ankle announce annoying annual annulment anonymous another answer antarctic
anthology anthrax anti antidote antique anxiety anxious any anybody anyhow anymore anyone anyplace anything anytime
anyway anywhere apart apartment apollo apologise apologize apology apparent appeal appear appetite applause apple
applied apply appointed approach approval approve arcade arch archer architect archive archives arctic are area
arena argue argument armed armor armoured arms army arose around arrange array arrest arrival arrive arrogant arrow
arroyo arsenal arson art artery article artillery artist artistic artwork as ashamed ashes aside ask askew asleep
aspect aspire aspirin assassin assault assembly assets assist assistant associate assume assure at athlete athletic
atomic attached attack attempt attend attention attic attitude attorney attract attracted auburn auction audience
audio audition august aunt auntie aura aurora author authority auto autograph automatic autopsy autumn auxiliary
available avatar avenger avenue average aviation avoid awake award aware away awesome awful awhile awkward axis babe
baby bachelor back backdoor backpack backstage backup backwards backyard bacon bacteria bad badge badger badman
baggage bags bail bait bake baker balance balcony bald ball ballet ballistic balloon ballot bamboo banana band
bandit bang bank banks banner bannister banshee banzai baptist bar barb barbecue barber bare barefoot barely bargain
barge bark barker barn baron baronet baroque barracks barrel barrier barrow bartender base baseball based basement
basic basically basil basin basis basket bass basset bassist batch bath bathroom bathtub batiste batman bats
battalion batten battery batting battle bay be beach beacon beagle beam bean beanie bear beast beat beaten beau
beautiful beauty beaver became because beck become bed bedroom bedside bedtime beef beefcake been beep beer beetle
before began begin beginning begun behalf behave behavior behaviour behind behold being belief believe bell belle
belong beloved below belt bench bend bender beneath benefit bent berg berry beryl beside besides best bet beta
betcha bethel betray betrayal better between beware beyond bible biblical bicycle bidding big bigfoot biggie bike
bikini bill billboard billion billy binder binding bingo biography biology birch bird birdie birth birthday biscuit
bishop bit bite bizarre black blackjack blackmail blackout blade blah blame blanch bland blank blanket blast blaster
blaze blazer bleed bleeding blend bless blessed blew blind blink bliss blizzard block blond blonde blood bloom
blossom blouse blow blown blue bluebell bluebird bluefish bluff blunt board boat boatman bob bobby bobcat bock body
bodyguard bogey bogus boil bold bologna bolt bomb bomber bond bone bonehead bong bonkers bonnie bonny bonsai bonus
booboo boogie book bookstore bookworm boom boomer boost boot booth bootie booze border bore bored boring born
borough borrow boss both bothered bottle bottom bought boulevard bounce bound boundary bounty bouquet bourbon
bourgeois bourne bout boutique bower bowl bowling bowman bowwow box boy boyfriend bracelet bracken brad brain branch
brand brandy brant brass brat brave bravo bray breach bread break breakdown breakfast breakup breast breath breathe
breed breeding breeze brewer bribe brick bridal bride bridge brief briefcase briefly brigade brigadier bright brill
brilliant brim bring brink broad broadcast brogan broke broken bronco bronze brook brother brought brown brownie
bruise bruiser brunch brush brutal bubba bubble buck buckaroo bucket buckeye buckle buckshot bud buddy budget buff
buffalo bugging build building built bulk bull bulldog bullet bulletin bullfrog bullock bummed bummer bump bunch
bundle bunghole bunker bunny buns bunting burden bureau burger burgess burial burl burley burn burnt burr burrito
burrow burst bury busby bush bushido business buss bust buster busy but butch butcher butler butt butterfly button
buy buzz buzzard by bye bypass byzantine caballero cabbage cabin cabinet cable cactus caesar cafe cafeteria caffeine
cage cake calendar calico call calm came camel camellia camera camp campaign campus can canal cancel cancer
candidate candle candy cane cannabis cannon cannot canon canton canyon capable capacity cape capital capitol caprice
captain captive capture car caramel caravan caraway carbon carder cardiac cardinal cards care career careful
careless cargo carmine carnage carney carol carpenter carper carpet carriage carrier carrion carrot cart carter
cartoon carver cascade case cash casino casket cast castle casual catch category catering catfish cathedral catholic
cattle caught cause caution cautious cavalier cavalry cave caveman caviar cease ceiling celebrate celebrity celesta
celeste cell cellar cemetery census cent center central centre century cereal ceremony certain certainly certified
chain chainsaw chair chairman chalk challenge chamber chambers champ champagne champion chance chandler change
channel chaos chapel chapman chapter character charade charge charity charm charming chart chase chassis chastity
chat chauffeur cheap cheat cheating check cheek cheer cheese cheesy cheetah chef chemical chemistry cheque cherish
cherry chess chest chestnut chew chewing chi chichi chick chicken chief child childhood childish children chile
chili chill chilli chimera chin china chinook chip chipmunk chipper chocolate choice choir choke choose chop chopper
chorus chose chosen chow christen christie christy chrome chronic chronicle chubby chuck chunk chunky church ciao
cigar cigarette cinder cinema cinnamon circle circuit circular circus citadel citation citizen citizens city civic
civil civilian civilized claim clamp clan clarinet class classic classical classroom clause claw clay claymore clean
clear clearance clement clergy clerk clever click client cliff climate climb clinic clinical clip clipper clock
close closet closure clothes clothing cloud clover clown club clue clueless clumsy cluster coach coal coalition
coast coastal coat cobalt cobra cocaine cocktail cocoa coconut code coffee coffin cognitive coin coke cold cole
collapse collar colleague collect collected collector colleen college collier colon colonel colonial color colour
column coma comb combat combine combined come comedian comedy comet comfort comfy comic command commando comment
commerce commit committed committee common commune communist community compact companion company compare compared
compass compete complain complaint complete complex component composed composer compound compute computer concept
concern concerned concert concord concrete condemned condition condo condor conduct conductor cone confess confide
confident confirm confirmed conflict confront confuse confused confusing confusion conger congress conn connect
conquest conscious consensus consent consider consist console constable constant construct consulate consult
consumer contact contain conte contempt content contest context continent continue continued contract contrary
contrast control convent convert convict convince convoy cook cookie cool coon cooper cooperate cope copper copy
copyright coral cord core cork corky corn corner corolla corona coroner corporal corporate corps corpse corral
correct corridor corrupt corsair corvette cosmetics cosmic cosmos cost costume cote cottage cotter cotton couch
cougar cough could council counsel counselor count country county coup couple courage course court courtesy
courtroom cousin couture cover coverage covert covey coward cowboy coy coyote cozy crab crack craft cramps crane
crank cranky crash crater craven crawl crazed crazy cream create creation creative creator creature credit creed
creek creel creep crenshaw cress crest crew crib cricket cried cries crime criminal crimson crisis crisp criteria
critic critical criticism critter crock crook crop cross crouch crow crowded crown crucial cruel cruise crunch
crusader cruse crush crying crystal cuff cuisine cult cultural culture cup cupcake curb cure curfew curiosity
curious currency current currently curry curse curt curtain curve custody custom customer cut cute cutie cutlass
cutler cycle cyclone cyclops cylinder cynical cypress dad daemon dagger dahl dahlia daily daisy dale damage dame
dammit damn dance dang danger dangerous danish dare dark darkness darling darn dash data database date daughter
davenport dawn day daylight deacon dead deadhead deadline deaf deal dealt dean dear death debate debt debut decade
deceased decency decent deception decide decided decision deck declare decline decrease decree dedicated deed deejay
deep deer defeat defence defend defendant defender defense defensive defiant define defined definite defunct degree
deja delay delegate delete delicate delicious delight delighted deliver dell delta deluxe demand demo democracy
democrat demon demonic denial dense density dent dental dentist deny departed departure depend dependent deposit
depot depressed depth deputy derby derrick descended descent describe desert deserve design desire desk despair
desperate despise despite dessert destined destiny destroy detail detection detective detector detention determine
develop developed device devil devoted devotion dexter dharma diagnosis dial dialect dialog dialogue diameter
diamond diary dibble dice dickey dickie did die diehard diesel diet differ different difficult digger digital
dignity dilemma dill dime dimension dimple diner ding dingdong dingle dining dinner dinosaur diocese diploma
diplomat direct direction director dirk dirt dirty disabled disagree disappear disaster disc discount discover
discreet discuss disease disgrace disguise dish disk dismiss disorder display disposal dispute distance distant
distinct distract distress district disturb disturbed ditch dive diverse diversion diversity divided divine division
divorce dizzy do doberman doc dock docks doctor doctoral doctorate doctrine document dodge dodger does dog doggie
doghouse doing doll dollar dolly dolphin domain dome domestic dominant domino don dona donate donation done dong
donkey donna donor doodle doom doomed doomsday door doorman doorstep doorway dope dork dorm dose dotty double doubt
dough doughboy doughnut doughty dove dowdy down download downtown dozen draft drag dragon dragoon drainage drake
drama dramatic drank draper draw drawn dreadful dream dreamt dress drew dried drift drill drink drip drive driven
driver driveway droopy drop drove drown drowning drug drum drummer drunk drunken dryer dual duchess duchy duck dude
due duff duke dull dumb dummy dump dumpster dung dunno duration during dust dusty dutch duty dwell dyer dying
dynamic dynamite dynamo dynasty each eager eagle earl earlier earliest early earn earnest ears earth ease east
eastern easy eat eaten eaves ebony echo eclipse ecology economic economy eddy edge edgy edition editor editorial
educated education effect effective efficient effort eggs eight eighteen eighth either elaborate elbow elder eldest
elect elected election electoral electric electron elegant element elements elephant elevated elevation elevator
eleven eligible eliminate elite elope else elsewhere embarrass embassy embrace emerald emergency emerita emery
emotion emotional emperor emphasis empire employee empress empty enable encounter encourage end endemic endless
enemy energy engage engaged engine english enhance enigma enjoy enlighten enlisted enormous enough ensemble ensure
enter entertain entire entitled entity entrance entropy entry envelope envy enzyme epic episcopal episode epsilon
equal equality equation equipment equipped equity era erase errand error escape escort essay essence essential
establish estate esteem ester estimate estimated eternal eternity ethics ethnic ethyl etymology eureka euro eve even
event eventual ever everybody everyday everyone evidence evident evidently evil evolution exact exactly exam examine
example excellent except exception excess exchange excited exciting exclusive excuse execute execution executive
exercise exhausted exhibit exigent exile exist existence existing exit exodus exotic expand expanded expansion
expect expense expensive expert expertise explain explode explore explorer explosion export expose exposure express
exquisite extend extended extension extensive extent exterior external extinct extra extreme eye fabric fabulous
facade face facial facility fact faction factor factory faculty fade fail failure fain faint fair faith faithful
fake falcon fall fallen fallout false fame familiar family famous fancy fandango fang fanny fantasia fantastic
fantasy far fare farewell farm farmer farrow farther fashion fast fastball fatal fate father fault favor favorable
favorite favour favourite fawn fay fear feast feather feature features federal feed feel feelings feet fell fella
fellow felon felony felt female feminine feminist fence fender fern ferret ferry fester festival fetch fever few
fiance fiancee fiction fictional field fiesta fife fifteen fifth fifty fight figure file fill film filter filth
filthy final finale finance financial finch find findings fine finger finish finished finite fink fire fireball
firefly fireman fireplace firewall fireworks firm first fiscal fish fisher fishing fist fitness fitted fitting five
fix flag flagship flame flamingo flanker flash flat flattered flavor flaw flea fleck fled fleet flesh flew flexible
flick flies flight fling flint flip flipper flirt float floating flood floor floppy flora flounder flow flower flown
fluffy fluid flush flying foam focus fold folk folks follow following fond food fool foolish foot footage football
for forbid forbidden force forehead foreign foreman forensics forever forgave forget forgive forgiven forgot
forgotten fork form formal format formation former formula forsaken fort forte forth fortress fortunate fortune
forum forward fossil foster fought foul found fountain four fourteen fourth fox foxtrot fragile frame framework
franc franchise frank frankfurt frat fraud freak freaky free freedman freedom freeman freestyle freeway freeze
freight frequency frequent fresh freshen freshman fridge fried friend fries fright frighten frisky fritz frog
frogman from front frontier frost froze frozen fruit fry fuel fugitive fulfill full fuller fun function funding
funds funeral funk furious furlong furniture further fuse fusion fuss future fuzzy gabby gable gadget gage gain gala
galaxy gale gall gallant gallery galore gambit gamble game gamecock gang gangster garage garbage garden gargoyle
garland garlic garner garnet garret garrison gasoline gastropod gate gateway gather gator gauge gave gawker gay gear
geek geez gender gene genera general generate generator generic generous genesis genetic genie genius genre gentile
gentle gentleman gentlemen gently gentry genuine genus geography geology geometry gesture get getaway ghetto ghost
giant gift gill gimme ginger ginny giraffe girl gist give given gizmo glacier glad gladden gladiator glass glaze
glen glimpse gloat global globe glorious glory glove glow glue go goad goal goalie goat goblin god goddess godfather
goes going gold golden goldfish goldsmith golf golfer gone gong gonna gonzo goober good goodbye goodman goodnight
goofy goose gopher gore gorgeous gorilla gosh gospel gossip got gotcha gothic gotta gotten governing governor gown
grab grace gracious grade gradually graduate graduated graham grain gram grammar gran grand granddad grandma grandpa
grandson granger granite granny grant grape graph graphic graphics grasp grass grateful gratitude grave graveyard
gravity gravy gray grease great greed greedy green greenwood greet greeting gremlin grew grey grid grief griffin
grill gringo grip grizzly grocery groom groove groovy gross ground group grove grow grown growth grudge grumpy
guarantee guard guardian guess guest guidance guide guild guilt guilty guinea guitar guitarist gulf gun gunner
gunshot gussie guts gutter guy gymnasium habit habitat hack hacker hackney had haggard haggis hail hair haircut hale
half halfway hall hallo hallway hamburg hamlet hammer hamster hand handcuffs handful handle handsome handyman hang
hank happen happiness happy harass harbor harbour hard harden hardware hare harm harmless harmony harness harp
harper harry harsh hart harvest has hassle hatch hatcher hate hateful hatred haul haunt haunted have haven havoc
hawk hazel he head headache heal health hear heart heartache heartbeat heartless heat heath heather heaven heavy
heck hector hedgehog heel heels height heir held hell hello helluva helm helmet help helpful helpless hence henry
her herald herb herbal here hereby heritage hero heroic heroin herself hesitate hey hickey hidalgo hidden hide
hideous high highland highway hike hilarious hill him himself hint hiphop hippie hire his historian historic history
hit hitch hmm hobby hockey hogan hoke hold holdings hole holiday hollow holly holocaust holy home homeboy homeland
homeless hometown homework homicide honest honey honeymoon honor honorable honorary honour hood hook hookup hooligan
hooray hooter hoover hope hopeful hopefully hopeless hopper horizon horn hornet horrible horror horse hose hospital
host hostage hostess hostile hostility hot hotbox hotdog hotel hotshot hound hour hourglass hours house household
hover how howdy however huff huge huh hull human humanity humiliate hummer humor hunch hundred hung hungry hunk hunt
hunter hurricane hurry hurt husband hush husker hustler hyacinth hybrid hydrogen hypocrite i ice iceberg icehouse
iceman idea ideal identical identify identity idiot idiotic idol if ignorant ignore iguana illegal illness illusion
image imaginary imagine immature immediate immigrant immortal immune immunity impact impala imperial implement
important impress impressed improve improved impulse impulsive in inaugural incapable inception inch incident
include including inclusion income increase increased incubus incumbent indeed index indicate indie indigo indoor
induced industry infant infantry infected infection inferno infinite infinity influence info inform informal
informed initial initially injection injured injury inland inner innings innocence innocent input inquiry insane
insanity insect insecure insert inside insight insist insomnia inspector inspire inspired install instance instant
instead instinct institute insult insurance integral integrity intend intended intense intensity intensive intent
intention inter interest interface interfere interim interior intern internal interrupt interview intimacy intimate
into intrepid introduce intrude intruder invasion invention inventory invest invisible invite involve involved iris
iron ironic is island isle isolated issue it item its itself ivory ivy jabot jack jackal jacket jackpot jade jaguar
jail jammed jammer janitor japan jasmine jasper java jay jaybird jazz jealous jean jeep jeez jelly jenny jeopardy
jerk jersey jess jester jewel jewelry jezebel jimmy jingle jinx job jockey joey john join joint joke jolly josh
journal journey joy jubilee judge judgment judicial juice juicy julienne jump junction jungle junior junk jury just
justice justify juvenile kahuna kaiser kamikaze kangaroo karate karma keel keen keep kelvin ken kent kept kern
ketchup key keyboard keystone khan kick kid kiddo kidnap kidney kill killer killjoy kina kind kinda king kingdom
kingpin kip kirk kiss kitchen kitten kitty kittycat knee knew knickers knife knight knives knock knockout knoll knot
know knowledge known kohl krypton label labor labour lack lackey lacrosse lacy ladder lady ladybug laid laird lake
lamb lame lamp lance land landlord landmark landscape lane language lantern laptop large larvae laser lash lassie
last late later lateral latino latte latter laugh laughter launch laundry laurel lavender law lawless lawn lawsuit
lawyer layer layman layout lazy lea leach lead leaf league leak lean leap learn lease leash least leather leave
lecture led ledge lee leery left legacy legal legend legendary legion legit lemon lemonade lend length lens leone
leopard lesbian less lesson let lethal level leverage levy liana liar liberal liberty library licence license lick
licker lie lien life lifestyle lifetime lift light lighten lightning like likewise lily lima limb limestone limit
limited limo line lineage linear lineup ling lingerie link lion lipstick liquid liquor lira list listen literacy
literally literary lithium little live livestock lizard load loaf loan lobby lobster local locality locate located
location lock locked loco lodge loft logic logical logo lollipop lollypop lone lonely long longbow longhorn longtime
look looney loony loop loose loosen loper lord lore loris lose loss lost lot lottery lotus loud lounge lousy love
loveless lovers low lowery lowlife loyal loyalty lucifer luck lucky luggage lumber lump lunar lunatic lunch lung
lure lust luster luxury lying lynch lyrics mac mace machine machinery macho mad madam madame madden made madman
madrigal maestro magazine maggot magic magical magician magnet magnetic magnitude magnolia magnum magpie maid maiden
mail mailman main mainland maintain majestic majesty major majority make makeup male mall mallard mama man manage
manager mandarin mandate mandatory mango manhattan maniac manila mankind manor mansion mantis manual many maple
marathon marble marcel march margarita margin maria marina marine marital maritime mark market marlin marquis
marriage married marrow marry marsh marshal mart martial martin martini marvel marvelous mask mason mass massacre
massage massive mast master matador match mate material maternal math matrix matt matter mattress mature maverick
max maxim maxima maximum may maya maybe mayday mayhem mayo mayor me mead meal mean meant meantime meanwhile measure
meat meatball meatloaf mechanic mechanism medal media median medic medical medicine medieval medium medley medusa
meek meet mellow melody melt meltdown member membrane memo memorial memory men menace mental mention menu meow
mercer merchant mercury mercy mere merely merger meridian merit mermaid merry mesa mess message messenger met metal
metallic metaphor meteor method metre metro mica mickey micro micron microwave mid middle midget midnight midway
might mignon migration mike mild mile miles military militia milk milkman mill miller million mind mine mineral mini
minimal minimum minister ministry minor minority mint minter minus minute miracle mirage mirror miserable misery
misfit misplaced miss missile mission mistake mistaken mister mistress misty mixed mixture mobile mock mode model
moderate modern module moist mojo mold mole molecular moll mollie mollusk molly mom moment momma monarch monastery
money mongoose monitor monk monkey monopoly monsieur monster month monument mood moody moon moonbeam moonlight moose
moral more moreover morgue morning morocco moron morris morrow mortal mortgage mosque moss most motel moth mother
motion motivated motive motley motor mount mountain mourning mouse mouth mouton move moved movement movie much
muffin mull mullen mullet mulligan multiple mummy munchkin municipal murder muscle muse museum mushroom music
musical musician must mustang mustard mutual my myrtle myself mystery mystic mythology nail naked name nanny napkin
napoleon narrative narrow nasty nation national native natural nature naughty naval navy near nearby neat necessary
neck necklace need needle negative neglected negotiate neighbor neither nelson nemesis nephew nerd nerve nervous
nest network neutral never new newbie newspaper newton next nice nick nickel nickname niece night nightmare nimbus
nimrod nine nineteen ninety ninja ninth nipper nirvana no nobility noble nobody noel noise nominee non none nonsense
noodle noon nope normal north northeast northern northwest nose not notable notably notch note nothing notice notify
notion nova novel novelist novella now nowhere nuclear nudist nugget null numb number numerous nurse nursery nutmeg
nuts nutty nylons oasis oath oatmeal obey object objection objective obligated oblivion obnoxious observe obsessed
obsession obsessive obtain obvious obviously occasion occupied occupy occur ocean odds of off offend offended
offense offensive offering office official often ogle oh ok okay old olive omega on once one onetime ongoing online
only onto onwards ooh oops opal open opera operate operating operation operator opinion opponent opposed opposing
opposite optical option or oracle oral orange orbit orchestra orchid ordeal order ordinary organ organic organised
organize organized orient oriented origin original orthodox other otherwise ottoman ouch ought ounce our ourselves
out outbreak outcome outdoor outfit outlaw output outside oval oven over overall overboard overcome overdue
overheard overkill overlord overnight overseas overtime overview owe owing own ownership oxford oxygen pace pacific
pack package pact paddle pagan page pageant paid pain painful paint pair pajamas palace paladin pale palm panama
panda panel pang panic pansy panther pants papal paper paperwork parade paradigm paradise paradox parallel paralyzed
paranoia paranoid pardon parent parish park parlor parole parrot parry parson part partial partially particle
partner partridge pascal pass passage passenger passion passport password past pasta pastor pat patch pate patent
paternity path pathetic patience patient patriot patrol patron patsy pattern pattie patty pause pavilion pawn pay
payback paycheck payment payoff payroll peace peaceful peach peacock peak peanut pearl peck peek peekaboo peel peep
peer peewee pelican penalty pence pencil pending penguin peninsula penni penny pension pentagon penthouse people
pepper per percent perfect perform perfume perhaps perimeter period permanent permit person personal personnel
persuade peter petit petition petroleum petty phantom pharmacy phase phew phoebe phoenix phone phony photo phrase
physical physician physics pianist piano piazza piccolo pick picket pickle pickup picnic picture piece pier pierce
pigeon piglet pike pile pill pillow pilot pinball pinch pine pineapple ping pinhead pink pinkie pinto pioneer pipe
pipeline piper pippin pirate pistol pitch pitman pity pizza place placebo placement plague plain plan plane planet
plant plasma plastic plate plateau platform platinum platter platypus play player playoff playtime plaza plea
pleading pleasant please pleasure pledge plenty plot plug plumber plumbing plus pocket poem poet poetry point
pointless poison poke poker polar pole police policeman policy polish polite political politics poll pollack pollock
pollution polo poncho pond ponder pony poodle poof pooh pool poor popcorn pope popper poppy pops popular populated
porch pork port portal porter portfolio portion portrait pose position positive possessed possible possibly possum
post postal postman postpone potato potential pothead potion potter pound pour poverty powder power powerful
powerless practical practice prairie praise prank prater pray preacher preceding precinct precious precise precisely
predator predict prefer pregnancy pregnant prelude premature premier premiere premises premium prep prepare prepared
presence present preserve president press pressure presto presume pretend pretty prevent previous prey price
priceless prick pride priest primary prime primitive prince princess principal principle print printer prior
priority prison prissy privacy private privet privilege prix prize probably probation problem procedure proceed
process proctor prodigy produce producer product professor profile profit program programme progress project
prolific prom prominent promise promote promotion pronounce proof proper property prophecy prophet proposal propose
proposed prosecute prospect protect protector protein protest protocol prototype proud prove proven provide provided
province provision provost prowler proximity proxy prudence psst psych psychic psycho psychotic public publicity
publish publisher pudding puff puffin puffy puke pull pulley pulsar pulse pump pumpkin punch punish punk punkin
pupil puppet puppy purchase pure purple purpose purse pursue pursuit push pussycat put puzzle pyramid python quack
qualified qualify quality quantity quantum quarter quartet quartz queen queer quest question quick quiet quit quite
quiz quote qwerty rabbi rabbit race racial rack racket radar radiation radical radio raft rage raid raider rail
railroad railway rain rainbow rainfall raise raja rally rambler ramrod ran ranch rancid random randy ranee rang
range ranger rank ransom rapid rapper raptor rare rascal rash rate rather ratings ratio rational raven raving ray
razz reach react reaction read ready real realise realistic reality realize really realm reaper rear reason rebel
rebellion rebound rebuild rebuilt recall receipt receive received recent reception receptor recess recipe recipient
recital reckless reckon recognize recommend record recover recovery rector red redbird redden redhead redline
redneck reduce reduction redwood reed reefer reeve refer referee reference refill reflect reform refuge refuse
regard regarding regent regime regiment region regional register regret regular rehab rehearsal rehearse reign
reject rejection relate related relation relations relative relax relay release relevant reliable relief relieve
relieved religion religious reload rely remain remainder remaining remains remark remember remind remix remote
removal remove removed renegade renewed renowned rent rental repair repay repeat replace report represent republic
request require required rescue research resent reserve reservoir residence resident resigned resist resolve resort
resource resources respect respond response rest restless restore restraint result retail retain rethink retire
retired retiring retreat return reunion reveal revenge revenue reverend reverse review revival revived revolt
revolver reward rhea rhino rhyme rhythm ribbon rice rich rick rickey riddle ride ridge rife rifle right righteous
ring riot ripper ripple rise risk ritual rival rivalry river roach road roadkill roadster roast rob robbery robe
robin robot robotics rock rocket rod rode roger role roll romaine roman romance romantic roof rookie room roommate
rooster root rope roper rose rosebud rosemary rosette roster rosy rotation rotten rough round rouse route routine
rover royal royalty rubber rubbing ruby rude ruff rugby ruin rule rumor run runway rural rush rust rusty ruthless
sabbath sabotage sabra sack sacred sacrifice saddle sadly sadness safari safe safety sage said sail sailboat sailing
sailor saint sake sal salad salary sale salesman sally salmon salt salute salvage same sample samurai sanctuary sand
sandman sands sandwich sandy sane sang sanity sapper sapphire saran sarcasm sarcastic sarge sari sassy satellite
satisfied satisfy sauce sausage savage savanna savannah save savings saw sawyer say scale scam scan scandal scar
scare scarecrow scared scarf scarlet scary scattered scenario scene scent schedule scheme schilling scholar school
science scientist scissors scoop scooter scope score scorpion scotch scout scrabble scrape scrappy scratch scream
screaming screech screen screw script scroll scrub scruffy scuba sculptor sculpture scum sea seagull seal sealed
seaman search season seat second secondary secrecy secret secretary section sector secular secure security sedative
seduce see seek seem seemingly seen segment seize select selection self selfish selfless sell semester semi seminary
senate senator send senior sense sensible sensitive sent sentence sentinel separate sequel sequence serenity
sergeant serial series serious serum servant serve service serving sesame session set settle setup seven seventeen
seventh seventy several severe sewer sex sexton sexual shack shad shade shadow shaft shaggy shah shake shaken shaky
shall shallow shalom shaman shame shamrock shanghai shank shape share shark sharp shattered shave shaver shay she
shearer sheep sheet sheets shelf shell shelly shelter shepherd sheriff sherry shield shift shin shine ship shipment
shirt shock shoe shoemaker shogun shook shoot shop shore short shot shotgun should shout shove shovel show shown
shred shrimp shrine shrink shun shut shuttle sibyl sick side sidewalk siege siemens sierra sight sigma sign signal
signature silence silent silk silly silver similar simple simply since sincere sing singer single singleton sinister
sink sinner sir sister sit site situated situation six sixteen sixth sixty size skate skater sketch skiing skill
skin skip skipper skirt skull skydive skyline slack slacker slam slap slaughter slave slavery slayer sleazy sledge
sleep sleeve sleigh slept slice slick slide slight slightly slim slime slinky slip slipknot slippery slope sloppy
slot slow smack small smart smash smashed smegma smell smile smith smoke smooth smudge smug snack snail snake snap
snapper snatch sneak sniper snooker snoop snoopy snow snowball snowboard snowman snuck so soak soap sober soccer
social socialist society sock soda sofa soft softball software soil solar sold soldier sole solid solitary solitude
solo solution solve some somebody someday somehow someone someplace somerset something sometime sometimes somewhat
somewhere son song sonic soon sophomore soprano sordid sore sorrow sorry sort sorta sought soul sound soup sour
source south southeast southern southwest souvenir sovereign soviet space spaceman spaghetti spam span spare spark
sparkle sparky sparrow spartan spawn speak spear spearman special specialty species specific spectra spectre
spectrum speech speed speedway speedy spell spend spent sphere sphinx spice spicy spider spike spill spin spine
spirit spiritual spit spite spitfire splash splendid splinter split spoil spoke spoken sponge sponsor sponsored
spooky spoon sport sports spot spray spread spring sprint sprite spunky sputnik spying squad squadron squall square
squash squat squeeze squirrel squirt stab stability stable stack stadium staff stage stain stairs stake stalker
stalking stall stallion stamp stand standard standings star stardust stare starfish stark starling start startled
starve starving stash stat state statement static station statue status statute stay steady steak steal stealth
steam steed steel steep steer stein stem step stereo sterling stern stetson stew steward stick stiff still sting
stinger stingray stink stinky stint stir stitches stock stocking stoker stole stolen stomach stone stood stoop stop
storage store storm stormy story storyline stout stove straight strain strand strange strangle strategic strategy
stratus straw streak stream street strength stress stressful stretch strict strictly strider strike string stringer
strip stroke stroll strong struck structure struggle strung stubborn stubby stuck stud student studio study stuff
stump stunned stunning stunt stupid sturgeon style stylus subfamily subject sublime submarine submit subpoena
substance subtle suburb suburban subway subzero succeed success successor such suck sudden suddenly sue suffer
suffering sugar suggest suicide suit suitable suitcase suite sultan summary summer summit summon sunflower sung
sunny sunrise sunset sunshine super superb superior superman superstar supper supply support suppose supposed
supreme sure surf surface surfer surfing surgeon surgery surgical surname surprise surrender surrey survey survival
survive survivor sushi suspect suspended suspense suspicion sustained swain swallow swamp swan swank swat swear
sweat sweep sweet sweetie swell swept swift swim swimming swing switch sword swordfish swore sworn symbol sympathy
symphony syndrome synopsis synthesis syringe syrup system syzygy tabby table tabloid tabor tackle tactical tactics
tad tail take taken tale talent talisman talk tall talon tang tango tank tanker tanner tape target task taste tasty
tattoo taught tawny taxi teach teachings teal team tear tease teasing tech technical technique teddy teen teenage
teenager teens teeter teeth telegraph telephone tell temp temper tempest temple temporary tempt tempted tempting ten
tender tennis tense tension tent tenth tenure tequila term terminal terminus terra terrace terrain terrapin terrible
terribly terrific terrified territory terror terrorism terrorist terry test testament testify testimony text than
thank thankful that thatcher the theater theatre thee theft their them theme then theology theorem theory therapist
therapy there thereby therefore thermal these thesis thick thief thieves thin thing think third thirsty thirteen
thirty this thorn thorough thorp those thou though thought thousand thrash thrasher thread threat threaten three
threw thrill thrilled throat throne through throw thrown thug thumb thunder thus tiara tick ticket tickle tide tier
tiger tight till timber time timothy ting tinker tiny tipper tire tired tissue titan titanic titanium title to toast
tobacco today toffee together toilet token told tolerate toll tom tomato tomb tomcat tomorrow tone tong tongue
tonight tons tony too took tool tooth top topic tora torch tore torn tornado torpedo torture toss total touch
touchdown tough tour tourism tourist toward towards towel tower town township toxic trace track tractor trade
trademark tradition traffic tragedy tragic trail train training traitor tramp trance transfer transform transit
translate transport trap trapped trash trauma traumatic travel tray treasure treasury treat treatment tree trend
trey trial triangle tribal tribe tribune tributary tribute trice trick trident tried trigger trilogy trinity trio
trip triple tripod triton triumph trombone troop trooper troops trophy tropical trotter trouble trout troy truce
truck trucker true truelove truly trumpet trunk trunks trust truth try trying tsunami tube tuck tucker tumor tuna
tundra tune tunnel turbo turf turkey turn turner turtle tutor twelfth twelve twentieth twenty twice twilight twin
twinkle twist twister twitter two type typhoon typical typically ugly ulster ultima ultimate ultra umbrella unable
uncertain uncle unclear under underdog underwear underwent undo unfair unhappy unicorn unified uniform union unique
unit united universal universe unknown unless unlike unlock unreal unstable untie until unto unusual up upcoming
update upon upper uprising upset upside upstairs uptight urban urge urgent urine us usage use used useful useless
user username usher usual usually utility utopia utterly vacation vague vail vain vale valentine valid valley
valuable value valve vampire van vanguard vanilla vanity vanquish variable variant variation variety various varsity
vary vase vast vault veal vector vegetable vehicle veil vela velocity velvet vengeance vent venture venue verbal
verbatim verdict verge veronica verse version versus vertical vertigo very vessel vest veteran via vial vibe vice
vicinity vicious victim victor victoria video videotape view vigil viking vile villa village vintage vinyl viola
violation violence violent violet violin viper virgin virtual virtue virus visa visible vision visit visitor visual
vita vital viva vocal vocalist vocals vodka voice void volcanic volley voltage volume voluntary volunteer vomit
voodoo vortex vote voyage voyager wacky wade wage wagon wagoner waist wait waitress wake walk walker wall wallet
walleye walnut walrus wander wanna want war ward warden wardrobe ware warehouse warfare warlock warlord warm warmth
warn warning warrant warren warrior warthog wartime was wash waste watch water waterloo waterman watershed watt wave
way we weak wealth wealthy weapon wear weasel weather weaver weber webmaster website wedded wedding weed week
weekend weep weigh weight weir weird welch welcome welder welfare well welsh went were werewolf west western whack
whale what whatever wheat wheel wheeler wheels when whenever where whereas wherever whether whew which while whilst
whine whip whiskers whiskey whisky whisper whistle white whitehead whiteout whitlow whittle who whoa whoever whole
whom whoops whose why wick wicked wicker wicket wide widow width wife wild wildcat wildfire wildlife wiles will
willingly willow wilt win windmill window winds windsurf windy wine wing wingspan winner winter wipe wire wireless
wisdom wise wish wishbone witch with withdraw withdrawn withdrew within without witness witty wives wizard woke wolf
wolfram wolverine wolves woman wombat women won wonder wonderful wont wood woodcock wooden woodland woodruff woof
word wore work workman workout workshop world worldwide worm worn worry worse worship worst worth worthless would
wound wow wraith wrangler wrap wrath wreck wren wrench wrestle wrestling wretched wright wrist write writing written
wrong wrote wuss yacht yang yard yeah year yearbook years yell yellow yes yesterday yet yield you young your
yourself youth yuan yuck yummy zebra zenith zephyr zeppelin zero zigzag zipper zippy zodiac zombie zone
"""
