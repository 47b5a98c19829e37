"""What is out of reach, what was not sent and help by trouble, put together from large lists of everyday words, so that it is the frame and the kind of the
words that say what answer is wanted.

Slots in capitals (<BODY>, <FOOD>, ...) are filled here, "<a FOOD>" with its article; the others (<who>, <c>, ...) by crowd.fill. The answers are those of
reach.py and helpdesk.py. errand(r, kind) is something out of reach, unsent(r, kind) a thing that was not sent, trouble(r) a question about Parley with what its
right answer contains.
"""
import re

import crowd
import reach
from parlour import single
from phrases import spread
from skills import pseudo
from wordings import alternatives, reword, slip
from words import ANIMALS, CAPITALS, CITIES, NAMES, NOUNS, an, cap


def _l(text):
    return [w.strip() for w in single(text) if w.strip()]


LEX = {
    "BODY": _l("""head|scalp|forehead|temple|left eye|right eye|eyelid|eyebrow|ear|left ear|right ear|earlobe|nose|nostril|cheek|upper lip|lower lip|mouth|tongue|gum|palate|wisdom tooth|front tooth|molar|jaw|chin|throat|neck|nape|shoulder|left shoulder|right shoulder|collarbone|armpit|upper arm|arm|elbow|forearm|wrist|left hand|right hand|palm|thumb|index finger|middle finger|ring finger|little finger|pinkie|knuckle|fingertip|fingernail|thumbnail|chest|breast|nipple|rib cage|breastbone|heart|lung|back|upper back|lower back|spine|shoulder blade|tailbone|belly|tummy|stomach|navel|side|waist|groin|hip|left hip|bladder|bottom|buttock|thigh|hamstring|leg|left leg|right leg|knee|left knee|right knee|kneecap|shin|calf|ankle|Achilles tendon|heel|foot|left foot|right foot|sole|big toe|little toe|toenail|skin|liver|kidney|spleen|gallbladder|bowel|appendix|prostate|thyroid|tonsil|sinus|voice box|windpipe|collar bone|hairline|beard area|tattoo|scar|piercing|old wound|stump|mole|tooth filling|root canal|crown on my molar"""),
    "BODIES": _l("""eyes|ears|teeth|gums|lips|hands|fingers|fingertips|wrists|elbows|arms|shoulders|legs|knees|ankles|feet|heels|toes|calves|thighs|hips|joints|muscles|glands|tonsils|eyelids|nails|palms|soles|ribs|kidneys|lungs|sinuses|knuckles|shins|veins|lymph nodes"""),
    "HURTS": _l("""aching|itching|hurting|throbbing|burning|stinging|tingling|twitching|swelling|bleeding|oozing|peeling|cramping|clicking|cracking|trembling|shaking|pounding|pulsing|pricking|weeping|stabbing|getting worse|going numb|falling asleep|feeling numb|feeling heavy|feeling stiff|feeling tight|turning red|turning blue|acting up|giving me trouble|giving me pain|killing me|driving me mad|keeping me awake"""),
    "SORE": _l("""sore|stiff|swollen|numb|red|blue|purple|itchy|tender|inflamed|bruised|hot|cold all the time|weak|dry and cracked|yellowish|puffy|painful|hard to move|infected, I think|out of joint|covered in spots|bigger than the other one"""),
    "GROWS": _l("""a lump|a bump|a rash|a red spot|a white patch|a blister|a boil|a swelling|a strange mark|a scab that won't heal|a wart|a bruise|a pimple|an ulcer|a cyst|a burn|a cut|a splinter|a bite|an itchy patch|a hard knot|little red dots"""),
    "HOWLONG": _l("""for days|for weeks|for a week|for two weeks|for three days|for months|since Monday|since Sunday|since yesterday|since last week|since the fall|since the accident|since my run|all night|all day|all week|every morning|every night|on and off|again|ever since the flight|after the swim|after every meal|when I sit|when I climb stairs|when I bend down|when I breathe in|when it rains|for ages|lately|since the concert|since the vaccination|for half a year"""),
    "ILL": _l("""measles|mumps|shingles|the flu|bronchitis|pneumonia|asthma|hay fever|migraine|tinnitus|vertigo|gout|arthritis|osteoporosis|sciatica|tendonitis|tennis elbow|carpal tunnel syndrome|a slipped disc|a hernia|diabetes|anaemia|high cholesterol|high blood pressure|low blood pressure|an irregular heartbeat|angina|a stroke|a clot|varicose veins|heartburn|a stomach ulcer|gastritis|colitis|irritable bowel|constipation|diarrhoea|food poisoning|gallstones|kidney stones|a bladder infection|an ear infection|conjunctivitis|a stye|glaucoma|cataracts|sinusitis|tonsillitis|laryngitis|eczema|psoriasis|acne|hives|ringworm|athlete's foot|scabies|head lice|Lyme disease|malaria|tetanus|hepatitis|covid|chickenpox|whooping cough|croup|glandular fever|epilepsy|dementia|Parkinson's|multiple sclerosis|insomnia|sleep apnoea|restless legs|burnout|depression|ADHD|autism|anxiety|an overactive thyroid|menopause|endometriosis|thrush|haemorrhoids|a sprain|concussion|frostbite|sunstroke|dehydration|altitude sickness|seasickness|lactose intolerance|a nut allergy|coeliac disease|hiccups|night sweats|cancer|shin splints|plantar fasciitis"""),
    "DRUG": _l("""aspirin|ibuprofen|paracetamol|acetaminophen|naproxen|codeine|morphine|tramadol|diclofenac|amoxicillin|penicillin|doxycycline|antibiotics|cortisone|prednisone|antihistamines|cetirizine|an inhaler|insulin|metformin|statins|blood thinners|beta blockers|ramipril|omeprazole|antacids|laxatives|charcoal tablets|sleeping pills|melatonin|valerian|St John's wort|antidepressants|sertraline|lithium|ritalin|the pill|the morning-after pill|iron tablets|vitamin B12|vitamin C|vitamin D|zinc|magnesium|calcium|omega 3|cough syrup|nose drops|nasal spray|eye drops|ear drops|throat lozenges|a pain patch|iodine|antiseptic|calamine lotion|hydrocortisone cream|diaper cream|worming tablets|travel sickness pills|nicotine patches|echinacea|herbal tea|CBD drops|creatine|protein powder"""),
    "CHILD": _l("""baby|newborn|toddler|two year old|three-year-old|four year old|little girl|little boy|son|daughter|infant|grandson|granddaughter|twins' little sister|youngest|eldest|kid|child|godchild|niece|nephew|six month old|ten year old"""),
    "CHILDILL": _l("""has a fever of 39|has a fever of {38.5|39.4|40|101|102|103}|is running a temperature|is burning up|has spots all over|has a rash on the belly|won't stop coughing|keeps throwing up|has been vomiting since midnight|has diarrhoea|pulls at the ear and cries|has a barking cough|won't drink anything|has swallowed {a coin|a marble|a button|a pea|some soap}|has a swollen cheek|has bumped the head|has a runny nose|wheezes at night|has a stomach ache|has red eyes in the morning|scratches all day|was bitten by {a dog|a tick|an insect}|has worms|has lice|is teething and hot|limps since this morning|has not pooed for five days"""),
    "FOOD": _l("""goulash|paella|ramen|pho|pad thai|biryani|butter chicken|tikka masala|dal|samosas|naan|chapati|dosa|tzatziki|moussaka|souvlaki|falafel|hummus|tabbouleh|shakshuka|couscous|tagine|jollof rice|injera|borscht|pierogi|pelmeni|stroganoff|sauerkraut|schnitzel|spaetzle|bratwurst|pretzels|rye bread|sourdough|ciabatta|focaccia|baguettes|brioche|croissants|crepes|quiche|ratatouille|coq au vin|bouillabaisse|onion soup|fondue|raclette|rosti|polenta|gnocchi|ravioli|lasagne|carbonara|bolognese|pesto|risotto|minestrone|tiramisu|panna cotta|cannoli|pizza dough|calzone|gazpacho|tortilla|churros|empanadas|tacos|burritos|enchiladas|guacamole|salsa|nachos|quesadillas|tamales|mole|ceviche|feijoada|chimichurri|jerk chicken|gumbo|jambalaya|cornbread|grits|clam chowder|mac and cheese|pulled pork|spare ribs|meatloaf|burgers|hot dogs|coleslaw|potato salad|Caesar salad|waffles|pancakes|French toast|granola|porridge|scrambled eggs|poached eggs|an omelette|eggs Benedict|fish and chips|shepherd's pie|Yorkshire pudding|bubble and squeak|toad in the hole|haggis|scones|crumpets|trifle|apple crumble|rice pudding|custard|lemon curd|marmalade|strawberry jam|chutney|pickled onions|kimchi|bibimbap|bulgogi|sushi|miso soup|tempura|teriyaki salmon|okonomiyaki|gyoza|dumplings|spring rolls|fried rice|chow mein|sweet and sour pork|Peking duck|mapo tofu|satay|nasi goreng|laksa|green curry|tom yum|pea soup|lentil soup|pumpkin soup|leek and potato soup|chicken soup|tomato soup|oxtail soup|beef stew|Irish stew|chilli con carne|baked beans|stuffed peppers|stuffed cabbage|meatballs|roast beef|roast lamb|roast chicken|a Christmas turkey|a goose|a leg of lamb|venison|rabbit stew|trout|cod in batter|mussels|prawns|scallops|squid rings|gravlax|herring salad|mushroom sauce|gravy|hollandaise|bechamel|mayonnaise|ketchup|mustard|a vinaigrette|garlic bread|mashed potatoes|chips|jacket potatoes|potato gratin|cauliflower cheese|creamed spinach|glazed carrots|a nut roast|tofu scramble|vegan brownies|banana bread|carrot cake|cheesecake|a sponge cake|a chocolate cake|a lemon drizzle cake|a Black Forest gateau|strudel|plum cake|gingerbread|shortbread|macarons|meringue|eclairs|profiteroles|doughnuts|muffins|cupcakes|oat biscuits|baklava|halva|gulab jamun|kheer|mochi|ice cream without a machine|sorbet|lemonade|iced tea|mulled wine|eggnog|a mojito|sangria|elderflower syrup|kombucha|kefir|yoghurt|ricotta|ghee"""),
    "LEFT": _l("""eggs|rice|old bread|carrots|two onions|leeks|half a cabbage|a pumpkin|courgettes|an aubergine|beetroot|spinach|kale|mushrooms|tinned tomatoes|tinned tuna|chickpeas|kidney beans|red lentils|potatoes|sweet potatoes|pasta|noodles|mince|chicken thighs|sausages|bacon|salmon|feta|mozzarella|cream|sour milk|oats|ripe bananas|apples|plums|rhubarb|coconut milk|tofu|quinoa|couscous|a tin of beans|frozen peas|peppers|celery|parsnips|leftover turkey|cold potatoes"""),
    "LAND": sorted(c for c in CAPITALS) + _l("Slovania|Swizerland|Hungry|Tailand|Brasil|Turky|Polland|Chzech Republic|Columbia|Phillipines|Argentinia|Marocco|Sweeden|Netherland|Ukrain|Rumania|Egpyt|New Zeeland|Singapor|Singapore|Taiwan|Hong Kong|Israel|Qatar|Dubai|Costa Rica|Panama|Honduras|Georgia|Armenia|Kazakhstan|Mongolia|Laos|Cambodia|Myanmar|Fiji|Samoa|Haiti|Barbados|Albania|Kosovo|Moldova|Belarus|Andorra|Monaco"),
    "COIN": _l("""dollars|US dollars|bucks|euros|pounds|pounds sterling|quid|yen|yuan|won|rupees|Indian rupees|roubles|rubles|hryvnia|zloty|forints|Czech crowns|Swedish crowns|Norwegian kroner|Danish kroner|Icelandic krona|Swiss francs|francs|lira|Turkish lira|lei|leva|dinars|dirhams|riyals|shekels|rand|naira|cedis|shillings|birr|pesos|Mexican pesos|Argentine pesos|reais|soles|bolivars|Canadian dollars|Aussie dollars|kiwi dollars|Hong Kong dollars|Singapore dollars|baht|dong|ringgit|rupiah|kip|riel|tenge|lari|manat|bitcoins|ether|dogecoin"""),
    "LANG": _l("""Dutch|Flemish|Frisian|Afrikaans|Danish|Swedish|Norwegian|Icelandic|Faroese|Finnish|Estonian|Latvian|Lithuanian|Polish|Czech|Slovak|Slovene|Croatian|Serbian|Bosnian|Macedonian|Bulgarian|Romanian|Hungarian|Albanian|Greek|Turkish|Russian|Ukrainian|Belarusian|Georgian|Armenian|Azeri|Kazakh|Uzbek|Mongolian|Chinese|Mandarin|Cantonese|Japanese|Korean|Vietnamese|Thai|Lao|Khmer|Burmese|Malay|Indonesian|Tagalog|Hawaiian|Maori|Samoan|Hindi|Urdu|Bengali|Punjabi|Gujarati|Tamil|Telugu|Nepali|Sinhala|Persian|Farsi|Pashto|Kurdish|Arabic|Hebrew|Yiddish|Amharic|Swahili|Somali|Zulu|Xhosa|Yoruba|Igbo|Hausa|Latin|ancient Greek|Esperanto|Welsh|Irish|Gaelic|Breton|Basque|Catalan|Galician|Portuguese|Brazilian Portuguese|Maltese|Luxembourgish|Swiss German|Klingon|Morse code|sign language|emoji"""),
    "SAY": _l("""my train is late|I am allergic to nuts|where is the station|how much is this shirt|the bill, please|could I have a glass of water|I would like to book a room|see you on Friday|get well soon|congratulations on your wedding|we miss you|the food was delicious|is this seat free|I don't eat meat|please call a doctor|I am lost|my phone is broken|nice to meet you|what is your name|it was a pleasure|happy new year|sorry for the delay|the meeting is at three|my heart belongs to you|never give up|two beers please|which way to the beach|I work as a nurse|you have beautiful eyes|the dog is in the garden|we need more time|please close the window|do you accept cards|no smoking|welcome to our house|my favourite colour is green|the library opens at nine|the lift is out of order"""),
    "TEXTS": _l("""letter|mail|menu|instruction sheet|speech|contract|paragraph|poem|song text|message from my landlord|recipe|birth certificate|website|subtitle file|sentence|diary page|love letter|label|user manual|whole page|novel|note from the school"""),
    "CITY": CITIES + _l("""Barcelona|Milan|Naples|Venice|Florence|Munich|Hamburg|Cologne|Leipzig|Salzburg|Geneva|Zurich|Lyon|Nice|Marseille|Bordeaux|Seville|Valencia|Porto|Bruges|Rotterdam|Glasgow|Manchester|Liverpool|Leeds|Bristol|York|Cork|Galway|Bergen|Gothenburg|Aarhus|Krakow|Gdansk|Brno|Split|Istanbul|Izmir|Thessaloniki|Marrakesh|Cape Town|Lagos|Mombasa|Dubai|Mumbai|Kolkata|Chennai|Shanghai|Hong Kong|Osaka|Kyoto|Busan|Singapore|Bali|Sydney|Melbourne|Perth|Auckland|Vancouver|Toronto|Montreal|New York|Boston|Chicago|Miami|Austin|Denver|Seattle|San Francisco|Los Angeles|Las Vegas|New Orleans|Cancun|Rio|Sao Paulo|Cusco|Medellin|my village|our town"""),
    "PLACE": _l("""pharmacy|chemist|bakery|butcher|supermarket|petrol station|charging point|cash machine|bank|post office|letter box|library|town hall|registry office|police station|hospital|dentist|eye doctor|vet|kindergarten|playground|swimming pool|sauna|gym|climbing hall|cinema|theatre|museum|zoo|botanical garden|church|mosque|synagogue|bus stop|tram stop|underground station|train station|airport|ferry|car park|garage|car wash|tyre shop|bike shop|hardware store|garden centre|pet shop|bookshop|toy shop|flower shop|furniture store|shoe repair|locksmith|tailor|dry cleaner|launderette|hairdresser|barber|nail studio|tattoo parlour|cafe|pizzeria|kebab shop|sushi place|vegan restaurant|ice cream parlour|pub|beer garden|night club|hostel|hotel|campsite|public toilet|recycling centre|flea market|farmers' market|job centre|tax office|embassy|notary|driving school|second-hand shop|phone shop|copy shop|tourist office"""),
    "WEATHER": _l("""rain|drizzle|snow|sleet|hail|thunder|lightning|fog|frost|black ice|sunshine|wind|a gale|a storm|a heatwave|a downpour|clouds|a clear sky|showers|dust|a tornado|a hurricane|a blizzard|a thaw|mist"""),
    "OUTDOOR": _l("""a picnic|a hike|a bike ride|a barbecue|washing the car|hanging out the laundry|painting the fence|mowing the lawn|a garden party|camping|sailing|fishing|a day at the beach|flying a kite|stargazing|an outdoor wedding|a football match|a jog|skiing|a boat trip|a market stall|planting beans|a funfair|golf|a balloon ride"""),
    "TIME": _l("""today|tonight|tomorrow|tomorrow morning|this afternoon|this evening|at the weekend|on Saturday|on Sunday|on Friday|next week|over Easter|at Christmas|in an hour|around noon|at night|the day after tomorrow|for the next three days"""),
    "PAST": _l("""last night|yesterday|on Saturday|on Sunday|last week|last weekend|this season|this year|in the end|today|last month|the other day"""),
    "SPORT": _l("""football|soccer|cricket|tennis|rugby|basketball|ice hockey|handball|volleyball|baseball|golf|boxing|darts|snooker|badminton|table tennis|swimming|biathlon|ski jumping|Formula One|MotoGP|cycling|rowing|curling|judo|fencing|chess|water polo|lacrosse|wrestling|athletics"""),
    "CUP": _l("""World Cup|European championship|cup final|Champions League|Super Bowl|Stanley Cup|World Series|Tour de France|Giro|Vuelta|Wimbledon final|US Open|French Open|Six Nations|Ashes|Ryder Cup|Olympic final|Winter Games|derby|relegation match|semi-final|Asian Cup|Africa Cup|Copa America|marathon|boat race|Grand Prix|chess championship|song contest|baking show|Eurovision|Oscars|Emmys|Grammys|Booker Prize|Nobel Peace Prize|Golden Bear|dance competition|quiz show"""),
    "VOTE": _l("""general election|presidential election|local election|mayoral election|referendum|runoff|vote in parliament|European election|midterms|primary|recount|state election|party conference|vote of no confidence|election in <LAND>|vote in <LAND>"""),
    "OFFICE": _l("""president|prime minister|chancellor|mayor|king|queen|pope|foreign minister|finance minister|health minister|governor|head of the central bank|head of the UN|speaker of parliament|leader of the opposition|national coach|ambassador"""),
    "NEWS": _l("""strike|flood|earthquake|wildfire|volcano|train crash|bank robbery|court case|summit|peace talks|war|ceasefire|bridge collapse|power cut|hacker attack|oil spill|rocket launch|royal wedding|trade deal|tax reform|school reform|climate summit|stock crash|merger|data leak|missing plane|kidnapping|protest|border dispute|vaccine study|bird flu|motorway pile-up|ferry accident|heat record|lottery draw|museum theft"""),
    "ROAD": _l("""M25|A1|A7|A40|I-95|Route 66|ring road|motorway|bypass|main road|tunnel|bridge|Brenner pass|coast road|high street|road to <CITY>|way to the airport|underground line 2|number 12 bus|ferry to <CITY>|night train to <CITY>|6.40 to <CITY>|flight from <CITY>|tram line 4"""),
    "GOODS": _l("""laptop|tablet|phone|e-bike|scooter|pram|car seat|lawnmower|chainsaw|drill|ladder|wheelbarrow|fridge|freezer|dishwasher|washing machine|tumble dryer|vacuum cleaner|kettle|toaster|coffee grinder|air fryer|mixer|sewing machine|mattress|bunk bed|sofa|desk|office chair|bookshelf|wardrobe|carpet|curtain rail|lamp|heat pump|solar panel|wood stove|boiler|tent|sleeping bag|rucksack|kayak|surfboard|pair of skis|tennis racket|football|guitar|piano|violin|drum kit|microphone|headset|camera lens|drone|telescope|microscope|printer|router|graphics card|hard disk|monitor|keyboard|game console|watch|wedding dress|winter coat|pair of boots|handbag|suitcase|pair of glasses|hearing aid|wheelchair|fish tank|dog basket|horse saddle|hamster cage|Christmas tree|litre of milk|loaf of bread|kilo of coffee|barrel of oil|pound of butter|dozen eggs|litre of diesel|pack of cigarettes|bus pass|train ticket to <CITY>|flight to <CITY>|room in <CITY>|cinema ticket|haircut|driving lesson|passport|dental crown|puppy|used van"""),
    "MONEY": _l("""shares|bonds|index funds|an ETF|gold|silver|bitcoin|ethereum|a flat|a second home|a plot of land|government bonds|oil futures|a pension plan|life insurance|a savings plan|peer-to-peer loans|art|vintage cars|whisky casks|Tesla stock|a tech fund|farm land|a garage|my brother's bar|a franchise"""),
    "DEBT": _l("""mortgage|car loan|student loan|credit card debt|overdraft|tax debt|inheritance|pension|redundancy pay|savings|bonus|winnings|severance|life insurance|building loan"""),
    "LAW": _l("""landlord|landlady|employer|ex-husband|ex-wife|neighbour|insurance company|phone company|bank|gym|school|mechanic|builder|roofer|dentist|airline|travel agent|online shop|car dealer|tax office|city|police|business partner|flatmate|tenant|debt collector|internet provider|nursing home|energy supplier|kindergarten"""),
    "WRONG": _l("""keeps my deposit|keeps my money|won't pay me|refuses to repair it|raised the price without notice|wants me out by May|ended my contract by text|opened my mail|sold me a broken thing|sent me a huge bill|won't give me a refund|charges me twice|put a camera in the hall|cut down my tree|gave my data away|ignores my letters|claims I owe them|says the warranty is void|wants to sue me|blames me for the damage|cancelled at the last minute|took my name off the list|won't let me in|changed the locks|sent a warning letter"""),
    "LEGAL": _l("""fly a drone over houses|record a phone call|film the police|keep bees in town|burn garden waste|park on the pavement|ride an e-scooter without a helmet|sell homemade jam|rent out my room|have a second job|work while on sick leave|copy a library book|use a photo from the web|sing a cover in public|build a treehouse|put up a fence|keep a rooster|collect mushrooms|pick wild flowers|camp in the woods|swim in the reservoir|marry abroad|adopt an adult|change my first name|drive with one eye|drive in flip-flops|carry pepper spray|open a will early|refuse overtime|strike without a union|disinherit a child|leave a child alone at home|tape a meeting|bring cheese over the border|grow one hemp plant|drink beer on the train|fish without a licence"""),
    "PERSON": _l("""Napoleon|Cleopatra|Archimedes|Pythagoras|Socrates|Seneca|Nero|Hannibal|Saladin|Charlemagne|William the Conqueror|Marco Polo|Vasco da Gama|Magellan|Copernicus|Kepler|Galileo|Newton|Leibniz|Euler|Gauss|Darwin|Mendel|Pasteur|Marie Curie|Einstein|Niels Bohr|Heisenberg|Ada Lovelace|Alan Turing|Grace Hopper|Tesla|Edison|Bell|Marconi|Gutenberg|James Watt|Florence Nightingale|Rosa Parks|Martin Luther King|Gandhi|Nehru|Mandela|Lincoln|Washington|Roosevelt|Kennedy|Churchill|Thatcher|de Gaulle|Bismarck|Lenin|Stalin|Gorbachev|Mao|Ho Chi Minh|Castro|Che Guevara|Bolivar|Evita|Frida Kahlo|Diego Rivera|Picasso|Dali|Monet|Renoir|Van Gogh|Rembrandt|Vermeer|Bosch|Klimt|Warhol|Hokusai|Bach|Handel|Haydn|Mozart|Beethoven|Schubert|Chopin|Liszt|Verdi|Wagner|Brahms|Tchaikovsky|Dvorak|Debussy|Miles Davis|Louis Armstrong|Ella Fitzgerald|Elvis|John Lennon|David Bowie|Bob Marley|Freddie Mercury|Madonna|Beyonce|Adele|Shakespeare|Cervantes|Moliere|Voltaire|Goethe|Schiller|Pushkin|Dostoevsky|Tolstoy|Chekhov|Dickens|Jane Austen|the Brontes|Mark Twain|Oscar Wilde|Kafka|Virginia Woolf|Orwell|Agatha Christie|Tolkien|Astrid Lindgren|Neruda|Pele|Maradona|Messi|Muhammad Ali|Usain Bolt|Serena Williams|Roger Federer|Charlie Chaplin|Buster Keaton|Greta Garbo|Marilyn Monroe|Hitchcock|Kurosawa|Fellini|Bruce Lee|Meryl Streep|Neil Armstrong|Yuri Gagarin|Amelia Earhart|Amundsen|Shackleton|Captain Cook|Sitting Bull|Geronimo|Robin Hood|King Arthur|Barack Obama|Angela Merkel|Bill Gates|Steve Jobs|Elon Musk|Jane Goodall|Jacques Cousteau|Hildegard of Bingen|Joan of Arc|Queen Victoria|Catherine the Great|Suleiman|Akbar|Ashoka|Confucius|Lao Tzu|Genghis Khan"""),
    "PROGRAM": _l("""snake game|tetris clone|pong game|pac-man clone|platformer|chess engine|sudoku solver|tic-tac-toe game|hangman game|minesweeper|memory game|card game|text adventure|racing game|space shooter|flappy bird clone|quiz app|weather app|to-do app|note taking app|shopping list app|habit tracker|calorie counter|expense tracker|timer app|alarm clock app|calendar widget|chat client|chat server|mail client|web server|file server|proxy|load balancer|web crawler|price scraper|RSS reader|blog engine|wiki|forum|web shop|booking system|login page|sign-up form|contact form|photo gallery|image resizer|video player|music player|synthesizer|metronome|drum machine|paint program|text editor|spreadsheet|PDF merger|file renamer|backup script|duplicate finder|log analyser|port scanner|password manager|password generator|QR code generator|barcode reader|URL shortener|Discord bot|Telegram bot|Twitter bot|stock tracker|trading bot|mortgage calculator|unit converter|currency converter|matrix library|linear solver|neural network|decision tree|image classifier|face detector|spell checker|translator|compiler|interpreter|JSON parser|CSV importer|regex engine|markdown converter|template engine|ORM|database|key-value store|message queue|job scheduler|binary search tree|hash table|priority queue|graph search|A* path finder|ray tracer|particle simulation|game of life|fractal viewer|maze generator|robot controller|thermostat|smart home hub|browser extension|WordPress plugin|Minecraft mod|VR demo|phone app for my club|kernel module|device driver|emulator|virtual machine|blockchain"""),
    "CODE": _l("""Python|JavaScript|TypeScript|Java|Kotlin|Swift|Objective-C|C|C++|C#|Rust|Go|Zig|D|Nim|PHP|Ruby|Perl|Lua|R|Julia|MATLAB|Octave|Haskell|OCaml|F#|Scala|Clojure|Lisp|Scheme|Erlang|Elixir|Prolog|Fortran|COBOL|Pascal|Delphi|Ada|BASIC|VBA|Visual Basic|Bash|PowerShell|awk|SQL|HTML and CSS|React|Vue|Angular|Svelte|Node|Django|Flask|Rails|Laravel|Spring|Unity|Godot|Unreal|Arduino|assembler|x86 assembly|WebAssembly|CUDA|VHDL|Verilog|Solidity|Dart|Flutter|Scratch|Excel formulas|LaTeX"""),
    "TEXT": _l("""essay|term paper|thesis|dissertation|abstract|book report|article|blog post|column|editorial|press release|newsletter|speech|wedding speech|eulogy|sermon|lecture|presentation|lesson plan|worksheet|report|lab report|business plan|grant proposal|project proposal|white paper|user manual|cover letter|CV|job ad|letter of complaint|letter of recommendation|resignation letter|reference|legal letter|petition|novel|novella|chapter|screenplay|play in three acts|radio play|sitcom script|musical|opera libretto|rap in six verses|ballad in twenty verses|epic|sonnet cycle|memoir|biography|travel guide|product description|sales page|slogan campaign|marketing plan|social media plan|research summary|book of fairy tales|crime story of ten pages|dialogue of five pages|film review|restaurant review"""),
    "TOPIC": _l("""climate change|school uniforms|social media|the ocean|plastic waste|bees|homework|zoos|space travel|electric cars|the railway|friendship|loneliness|democracy|voting at sixteen|fast food|vegetarians|football|chess|the moon|robots|artificial intelligence|my summer holidays|my grandfather's farm|our town's history|the wolf|rain forests|refugees|poverty|money|fashion|music|art in schools|the theatre|winter sports|mountains|volcanoes|the desert|birds|dinosaurs|vaccines|sleep|sugar|smoking|video games|reading|libraries|handwriting|mobile phones in class|working from home|the four-day week|city traffic|bicycles|nuclear power|wind power|water|soil|the circus|ghosts|dreams|time|happiness"""),
    "DRAWN": sorted(set(NOUNS[:150] + ANIMALS + crowd.LEXICON["any"] + crowd.LEXICON["pet"]) - set("grass sand rain snow wind sky smoke light shadow color sound music fire bread butter sugar water milk coffee tea cheese trousers thunder porridge gravel leaf seed root stone rock paper question answer idea number word hair hand foot head nose mouth ear eye heart finger parliament alphabet elbow".split())),
    "STYLE": _l("""in watercolour|in oil|in charcoal|in pencil|as a cartoon|as a comic strip|in pixel art|as an icon|as a logo|in the style of Monet|in black and white|photorealistic|in neon colours|as an anime|as a stencil|for my T-shirt|for a birthday card|for my wall|for the nursery|as a sticker|as a tattoo|with crayons|in 4K|with a sunset behind"""),
    "DEVICE": _l("""lights|kitchen light|bedside lamp|porch light|heating|thermostat|fan|air conditioning|radio|stereo|TV|projector|game console|oven|microwave|kettle|coffee machine|dishwasher|washing machine|dryer|robot vacuum|lawn robot|sprinkler|garage door|gate|front door lock|blinds|shutters|awning|alarm system|doorbell camera|baby monitor|pool pump|aquarium light|Christmas lights|electric blanket|printer|scanner|wifi|router|bluetooth|webcam|microphone|speaker|laptop|phone|tablet|car heating|charger|sauna"""),
    "ORDER": _l("""a pizza|two pizzas|sushi for four|a curry|a cab|a taxi to <CITY>|a bunch of roses|a birthday cake|a crate of water|nappies|cat litter|dog food|printer ink|a new <GOODS>|groceries|a parcel label|tickets for the opera|two cinema tickets|seats for the match|a table for six|a hotel in <CITY>|a flight to <CITY>|a train to <CITY>|a rental car|a ferry cabin|a plumber|an electrician|a babysitter|a cleaner|a dog walker|a piano tuner|a locksmith|a haircut|a massage|a dentist's appointment|a vet's appointment|an eye test|a blood test|a tennis court|a meeting room|a moving van|a skip|stamps|contact lenses|firewood|a bouquet for my <who>"""),
    "WHOM": _l("""my mum|my dad|my sister|my brother|my boss|my wife|my husband|my son|my daughter|my aunt|my uncle|my landlord|my teacher|my doctor|the school|the office|the plumber|the bank|the garage|the council|the caretaker|my neighbour|my best friend|my coach|the whole team|customer service|the hotel|grandma|<n>|<n>|<n>|<n> from work|the police|a taxi|reception|my lawyer"""),
    "MSG": _l("""I'm late|I'm ill today|dinner is at eight|the meeting is off|happy birthday|I miss them|the key is under the mat|I got the job|we need milk|the parcel is here|I can't come on Friday|thanks for the flowers|the car won't start|I'll be there at six|the kids are fine|I quit|the rent is paid|I want to be called back|they need not wait for me|the <DEVICE> is broken"""),
    "CHORE": _l("""the dishes|the ironing|the laundry|my homework|my taxes|the shopping|the hoovering|the windows|the paperwork|my maths sheet|the garden|the stairs|my shift|the cooking|the beds|the accounts|the gutters|the bins"""),
    "THING": _l("""invoice|boarding pass|ticket|timetable|shopping list|shipping label|map|contract|letter|worksheet|photo|flyer|poster|certificate|receipt|form|calendar page|recipe|song sheet|list of names"""),
    "CLOCK": _l("""six|half past six|7 am|7.15|quarter to eight|eight o'clock|noon|ten tonight|5:30|in ten minutes|in half an hour|in an hour|tomorrow at nine|on Monday morning|before the news|every weekday at seven|twenty past four|3 pm"""),
    "PLAY": _l("""jazz|some jazz|Mozart|techno|my playlist|the radio|rain sounds|whale songs|a lullaby|the Beatles|an audiobook|the news podcast|salsa|a polka|opera|heavy metal|Christmas songs|a film|the next episode|white noise|hip hop|the national anthem|something calm"""),
    "DOC": _l("""PDF|pdf file|report|contract|table|spreadsheet|Excel sheet|CSV|Word document|document|letter|invoice|manual|essay|thesis|slide deck|presentation|log file|zip|attachment|file|text file|minutes of the meeting|bank statement|receipt list|lease|CV|questionnaire|price list|transcript|lab report|script|config file|e-book|timetable"""),
    "PICT": _l("""photo|picture|image|screenshot|x-ray|MRI scan|scan|selfie|drawing|painting|sketch|map|chart|graph|diagram|bar chart|pie chart|floor plan|blueprint|logo|poster|postcard|receipt photo|menu photo|snapshot|passport photo|satellite image|meme|comic|cartoon|thumbnail|holiday pic|family portrait|handwritten note|whiteboard photo|photo of my rash|photo of my lunch|ultrasound picture"""),
    "FILM": _l("""video|clip|film|movie|recording|film clip|dashcam video|drone video|screen recording|home video|wedding film|trailer|slow-motion clip|security footage|webcam recording|TikTok|reel|animation|time lapse|goal replay|dance video|cooking video|phone video"""),
    "SOUND": _l("""song|voice message|voice memo|podcast|audio|mp3|recording of my choir|interview tape|melody|radio piece|wav file|audio book|lecture recording|guitar riff|bird call|ringtone|piano piece|audio note"""),
    "LINK": _l("""link|website|url|web page|YouTube link|article behind the link|wiki page|blog|homepage|shared folder|Google doc|online form|Dropbox link|tweet|forum thread|news site|map link|page at the address above"""),
    "TOOL": _l("""search tool|search engine|web search|browser|weather tool|clock tool|calendar tool|mail tool|map tool|translator tool|file reader|database tool|code runner|Python tool|shell tool|image generator|drawing tool|music player|stock ticker|news feed|news tool|dictionary tool|contacts tool|reminder tool|timer tool|currency converter|route planner|flight finder|hotel finder|recipe finder|job finder|train app|phone app|camera tool|scanner tool|printer tool|smart home tool|light switch tool|thermostat tool|PDF reader tool|spreadsheet tool|git tool|deploy tool|ticket tool|CRM tool|SQL tool|invoice tool|payment tool|plugin|wiki tool|library catalogue|plant finder|bird finder|dice tool"""),
    "FIND": _l("""the best <GOODS>|a cheap <GOODS>|the nearest <PLACE>|flights to <CITY>|a hotel in <CITY>|the phone number of <n>|when <PERSON> was born|who won the <CUP>|a recipe for <FOOD>|the weather in <CITY>|the opening hours of the <PLACE>|the price of <a GOODS>|how many people live in <CITY>|news about the <NEWS>|reviews of this <GOODS>|cures for <ILL>|the lyrics of that song|the capital gains rules|a job as a baker|a used <GOODS>|the rate of <COIN>|the distance to <CITY>|a house in <CITY>|facts about <TOPIC>|an article on <TOPIC>|my old school friend <n>"""),
    "MACHINE": _l("""thinkpad|old thinkpad|raspberry|raspberry pi|macbook|iMac|Mac mini|old tower|gaming PC|mini PC|NUC|netbook|Chromebook|home server|NAS|workstation|office PC|ten year old laptop|dell laptop|hp notebook|lenovo|surface|server in the cellar|VPS|cloud machine|rented server|school computer|dusty desktop|ryzen box|old xeon|i5 laptop|framework laptop|tablet PC|second-hand PC"""),
    "MODEL": _l("""mistral|mistral small|mixtral|llama|llama 3|llama 3.1|phi|phi 4|gemma|gemma 3|gemma 4|qwen|qwen 3|qwen3.5|qwen vl|gpt-oss|deepseek|falcon|granite|glm|smollm|olmo|nemotron|yi|command r|hermes|vicuna|codellama|devstral|kimi|ernie|internlm|bloom|starcoder|a mixtral finetune|tinyllama|exaone|cohere's model|zephyr|aya"""),
    "STORE": _l("""usb stick|external disk|NAS|download folder|downloads|second drive|SD card|desktop|network share|home directory|SSD|D: drive|stick|backup disk|~/models|/opt/models|/srv/weights|a zip on my stick|hugging face cache"""),
    "PROJECT": _l("""shop|web shop|startup|start-up|company|school|university|club|office|hospital|bakery|agency|newspaper|law firm|library|museum|hotel|call centre|farm|church|bank|charity|theatre|surgery|game studio|restaurant|town hall|tax office|kindergarten|product|SaaS|app"""),
    "SNOOP": _l("""my boss|my wife|my husband|my mother|my kids|my employer|the admin|the provider|the government|the NSA|hackers|advertisers|Google|Microsoft|OpenAI|the makers|the developers|the police|my flatmate|the neighbours|other users|my teacher|the cloud|a stranger|anybody|somebody|third parties|my ex|IT|the company"""),
    "SECRET": _l("""my diary|my illness|my salary|patient files|client data|bank details|passwords|love letters|company secrets|my tax form|medical results|private photos|my thesis|family matters|contracts|my source code|my address|my holiday photos|personal stuff"""),
    "FILEX": _l("""pdf|docx|word file|odt|txt|markdown file|csv|xlsx|spreadsheet|pptx|powerpoint|slides|epub|png|jpg|jpeg|gif|webp|heic|tiff|bmp|avif|svg|mp4|mov|webm|mkv|avi|old avi|zip|log|json file|html file|scan|screenshot|photo|iPhone video|GoPro clip|e-mail|receipt|manual"""),
    "CLIENT": _l("""langchain|llama-index|litellm|open webui|librechat|the openai package|openai-python|the node sdk|aider|cline|continue|cursor|zed|vs code|emacs|obsidian|n8n|home assistant|node-red|zapier|a slack bot|a discord bot|a telegram bot|my chatbot|jupyter|haystack|autogen|crewai|dify|flowise|anything llm|sillytavern|jan|msty|raycast|excel|make.com"""),
    "ASKER": _l("""my script|a python script|my website|my app|a cron job|my shell script|my phone app|another program|our backend|a bot|a java program|my php page|a rust program|a go service|my home automation|a spreadsheet|our intranet|my game|a plugin|a notebook|my robot|some javascript|an arduino|a C program"""),
    "CHATABOUT": _l("""<TOPIC>|<FOOD>|<CITY>|the <GOODS>|my <GOODS>|the wedding|the trip to <CITY>|my <who>|a poem|the garden|my thesis|<n>|the contract|the <PLACE>|bees|trains"""),
    "DEVICE2": _l("""phone|tablet|iPad|smart TV|work laptop|second computer|wife's laptop|kids' tablet|other PC|e-reader|Mac in the office|laptop upstairs|watch|games console"""),
}
LEX["CURE"] = LEX["DRUG"]
EXTRA = ["LAND", "PERSON", "CITY", "FOOD", "GOODS", "PROGRAM", "TOOL", "MODEL", "ILL"]
_SLOT = re.compile(r"<(a |the )?([A-Z][A-Z0-9]+)>")


def put(r, text):
    """The text with a word for each slot in capitals; now and then one with a slip, or one that means nothing."""
    while True:
        m = _SLOT.search(text)
        if not m:
            return text
        w = spread(r, r.choice(LEX[m[2]]))
        if "<" not in w:
            x = r.random()
            if x < 0.02 and m[2] in EXTRA:
                w = pseudo(r, 2, 3)
            elif x < 0.06:
                p = w.split(" ")
                i = r.randrange(len(p))
                p[i] = slip(r, p[i])
                w = " ".join(p)
            elif x < 0.16:
                w = w.lower()
        if m[1] == "a " and not w.startswith(("a ", "an ", "the ", "my ", "<")):
            w = an(w)
        elif m[1] == "the " and not w.startswith(("a ", "an ", "the ", "my ")):
            w = "the " + w
        text = text[: m.start()] + w + text[m.end() :]


def finished(r, q, question=None):
    q = crowd.fill(r, put(r, q), 0.03)
    for key, words in (("<n>", NAMES), ("<c>", CITIES)):
        while key in q:
            q = q.replace(key, r.choice(words), 1)
    q = re.sub(r"  +", " ", q).strip()
    if r.random() < 0.6:
        q = cap(q)
    if q[-1:].isalnum() and r.random() < 0.55:
        first = q.split()[0].lower().strip(",")
        asks = re.search(r"[,.:] (how|why|what|who|when|which|where|can|could|is|are|does|do|will|should|shall|may|am|would|any|now what|did|must|have)\b[^,.:]*$", q, re.I) or " or " in q and first in ("is", "are")
        q += "?" if asks or first in "what what's which who who's where where's when when's why how how's is are do does did can could will would may am whose should any got has have was were".split() else "."
    return q


def _answers(kind, start=""):
    """The answers that reach.py has for a kind (those that begin with start, of the first group of it that has some)."""
    found = [a for k, _, answers in reach.ASKED if k == kind for a in answers if a.startswith(tuple(start.split("|")))]
    assert found, (kind, start)
    return list(dict.fromkeys(found))


# (kind, begin of the answers, share, wordings): a line is a pattern
REFUSED = [
    ("weather", "I ", 1.2, """
{will|does} it {rain|snow|hail|freeze|thunder|get foggy|clear up|stay dry|get hot|cool down} {in <CITY>|in <LAND>|here|over there|at my <who>'s} <TIME>
{any|is there} {chance of |risk of |}<WEATHER> {in <CITY>|in <LAND>|around here|at the coast|up in the hills|} <TIME>
is <TIME> {good|fine|dry enough|warm enough|too windy|too wet|too cold} for <OUTDOOR>{| in <CITY>| in <LAND>}
{can|could|should} {I|we|the kids} {plan|risk|do} <OUTDOOR> <TIME>, or {will it rain|does a storm come|is it too cold}
{how} {warm|cold|windy|wet|sunny|humid|icy|muddy} {is it|will it be|does it get} {in <CITY>|in <LAND>|there|outside} <TIME>
{weather|forecast|temperature|rain radar|wind speed|snow depth|pollen count|UV index} {in|for} {<CITY>|<LAND>}{| <TIME>}
{what|which} {jacket|coat|shoes|clothes} do I {need|wear} {in <CITY>|in <LAND>|for <OUTDOOR>} <TIME>, {is it cold|will it be wet|what's the sky doing}
{when|at what time} {does|will} {the rain|the storm|the snow|this fog|the heatwave|the wind} {stop|reach <CITY>|end|come|pass} {| <TIME>}"""),
    ("news", "", 1.6, """
{who|which team|which country} {won|lost|is leading|got through|took the title|came second} {in |}the {<CUP>|<SPORT> <CUP>} {<PAST>|}
how did {<CITY>|<LAND>|my team|our lads|the home side|our women} {do|play} {in the <CUP> |in the <SPORT> |against <CITY> |}<PAST>
{what's|what was|tell me|give me|any idea of} the {score|result|final score|half-time score} {of|in} {<CITY> against <CITY>|the <SPORT>|the <CUP>|the <SPORT> match in <CITY>}{| <PAST>}
{who|which party} {won|is ahead in|lost} the <VOTE>{| <PAST>| in <LAND>}
how did the <VOTE> {go|end|turn out} <PAST>
{who is|what's the name of} {the new |the |the current |our }<OFFICE> {of|in} {<LAND>|<CITY>}{| these days| at the moment}
{anything new|any news|an update|the latest|what do they say} {about|on} the <NEWS> in {<LAND>|<CITY>}{| <TIME>|}
{what happened|did anything happen|what is going on|what is new|what goes on} {with|about} the <NEWS> {in <LAND>|in <CITY>|}
did the <NEWS> in <CITY> {end|get worse|hurt anybody|begin|stop}{| yet|}
{is|was} there {a jam|traffic|a delay|an accident|a diversion|congestion|a closure} on the <ROAD>{| now| this morning| again}
{is|are we told whether} the <ROAD> {open|closed|blocked|delayed|running|clear|late}{| now| today| this evening}
{how is|what's} the traffic {in <CITY>|on the <ROAD>|to <CITY>|towards the <PLACE>} {now|right now|at this hour|this morning|}
what {is on|is playing|is showing} {at the theatre|at the cinema|on TV|in the arena|in the <CUP>} {in <CITY> |}<TIME>
{headlines|top stories|breaking news|sports news|front page} {from|of|in} {<LAND>|<CITY>}{| please|}
{when|where} is the {next <CUP>|next <VOTE>|<SPORT> match against <CITY>|next <SPORT> final}"""),
    ("prices", "I don't know prices", 1.5, """
how many <COIN> {do I get for|are|make|for} {<NUM> <COIN>|<a COIN1>|one <COIN1>}{| today| right now|}
{rate|exchange rate|rate of exchange|course|conversion} {of|for} {the <COIN1> in <LAND>|<COIN> to <COIN>|<COIN> against <COIN>|the money of <LAND>}{| today| please|}
{convert|change|turn|work out} <NUM> <COIN> {to|into|in} <COIN>{| at today's rate| please|}
what are <COIN> worth {in <COIN>|in <LAND>|these days}
which money is worth more, <COIN> or <COIN>
<NUM> <COIN> in <COIN>
{how strong|how weak|how high} is the <COIN1> {now|today|against the dollar|this week}
{what|how much} {does|would} {<a GOODS>|a good <GOODS>|a used <GOODS>|the cheapest <GOODS>} cost {|in <CITY>|in <LAND>|these days|on average}
{what's|tell me|check|find} the {price|current price|cheapest price|going rate} {of|for} <a GOODS>{| in <CITY>| in <LAND>| now|}
{how much|what} {should|must|do} I {pay|spend|ask|charge} for {my old <GOODS>|<a GOODS>|a nearly new <GOODS>}
is <NUM> <COIN> {too much|a lot|a fair price|cheap|okay} for <a GOODS>
{where|in which shop} is {<a GOODS>|the <GOODS>} {cheapest|on offer|on sale} {now|this week|in <CITY>|}
{did|will} {the price of <a GOODS>|prices in <LAND>|rents in <CITY>|petrol prices} {go up|rise|fall|drop}{| this year| again|}"""),
    ("prices", "I know nothing of markets", 1.2, """
{should|shall|may} {I|we|my <who>} {buy|sell|invest in|hold|get|put <NUM> <COIN> into} <MONEY>{| now| this year| before I retire| or wait}
is <MONEY> {a good investment|a bubble|safe|worth it|better than a savings account|too risky at my age|smart right now}
what {do I do|should I do|can I do|is best to do} {with|about} my <DEBT>{| of <NUM> <COIN>|}
how {do|can} I {pay off|refinance|reduce|invest|declare|get advice on} my <DEBT>{| faster| best|}
{can|could} {I|we} {afford|manage} {<a GOODS>|a house|a baby|a year off|two cars} {on|with} {my wage|<NUM> <COIN> a month|one salary|my pension}
{which|what} {fund|bank|broker|insurance|pension|credit card|account} is {best|right for me|safest|cheapest} {for|if I have} {my <DEBT>|a family|a freelancer|a student|my savings}
{how much tax|what tax|which fees} {do I pay|will I owe} on {my <DEBT>|<MONEY>|<NUM> <COIN>}"""),
    ("health", "I know nothing of medicine and|I am no doctor|I am sorry, I", 3.5, """
{my|my <who>'s} <BODY> {has been|has kept|is|keeps|started|hasn't stopped} <HURTS> <HOWLONG>{|, what is it|, what can I do|, should I worry|, help|. What helps|. Is that bad}
{both my|my|my <who>'s} <BODIES> {have been|are|keep|started} <HURTS> <HOWLONG>{|, what could it be|, any cure|, is that normal|. What now}
{my|my <who>'s} <BODY> is <SORE> <HOWLONG>{|, why|, what should I take|, is it serious|. Any idea|. What do I put on it}
{my|my <who>'s} <BODIES> are <SORE> <HOWLONG>{|, why|, what helps|. Is that dangerous}
{there is|there's|I have|I've got|I found|my <who> has} <GROWS> {on|near|under|behind} {my|the|one} <BODY>{|, what is it|, is it cancer|, do I need a doctor|. Should I pop it|. How do I treat it}
{why|what causes it that|how come} {my <BODY> keeps <HURTS>|my <BODY> is <SORE>|my <BODIES> are <SORE>|my <BODY> hurts}{| <HOWLONG>}
{I|my <who>} {can't|can hardly|can no longer} {move|bend|feel|lift|use} {the|my} <BODY> {<HOWLONG>|properly}{|, what now|. What is wrong}
{a pain|pain|some pain|pressure|a sharp pain|a funny feeling} in {my|the} <BODY> <HOWLONG>{|, what is it|: cause|, what helps}
{how many|what dose of|how much|how often may I take} <DRUG>{| a day| at once| for my weight| for an adult| with alcohol| before bed| for a child of {three|six|nine}}
{may|can|is it safe if} {I|my <who>|a pregnant woman|my <CHILD>} {take|have|mix|use} <DRUG> {and <DRUG>|with <DRUG>|for <ILL>|every day|with wine|on an empty stomach|against <ILL>}
is <DRUG> {good for|any use against|dangerous with|allowed with|better than <DRUG> for} <ILL>
{what|which} {dose of|side effects of|brand of|alternative to} <DRUG>
{what|which pill|which cream|what home remedy|what tea} {helps|works|is good} {against|for|with} <ILL>
{my|our|the} <CHILD> <CHILDILL>{|, what do I do|, is that bad|, shall I wait|. Do we go to hospital|. What can I give|, how much <DRUG>}
{how do I|what's the best way to} {treat|cure|prevent|recognise|get rid of|live with} <ILL>
{do|could|might} {I|my <who>} have <ILL>{| if my <BODY> keeps <HURTS>|, my <BODY> is <SORE>|}
{is <ILL> contagious|is <ILL> deadly|is <ILL> hereditary|how long does <ILL> last|how do you catch <ILL>|how serious is <ILL>}
{symptoms|signs|cause|treatment|diagnosis|stages} of <ILL>
{I|my <who>} {was told I have|got a diagnosis:|tested positive for|think it is} <ILL>{|, what now|. What does that mean|, can I work|, can I fly|, what should I eat}
{my blood pressure|my cholesterol|my blood sugar|my pulse|my iron level|my liver value} is {<NUM>|<NUM> over 90|too high|too low}{|, is that bad|. What should I do|, normal}
{be|play} {my|the} {doctor|nurse|therapist|dietician|pharmacist}{:|,} {my <BODY> keeps <HURTS>|I have <ILL>|which <DRUG> do I take}"""),
    ("health", "I know nothing of animals", 0.5, """
{my|our} <pet> {has been limping|won't eat|keeps scratching|throws up|sneezes|has bald patches|drinks a lot|has worms|has fleas|has a swollen paw|has runny eyes|shakes|has diarrhoea} <HOWLONG>{|, what can I do|, what is it|. Is it serious}
{may|can|should} {my|a|our} <pet> {eat|have|be given} {<FOOD>|<DRUG>|chocolate|grapes|raw egg|milk}
{my|our} <pet> {ate|swallowed|licked} {<FOOD>|chocolate|<DRUG>|a sock|slug pellets|a bone}{|, what now|, help|. Is that bad}"""),
    ("law", "", 1.6, """
{my|the|our} <LAW> <WRONG>{|, what can I do|, is that legal|, what are my rights|. Can I sue|. May they do that|. Do I need a lawyer}
{is it legal to|am I allowed to|are we permitted to|is it forbidden to} <LEGAL>{| in <LAND>| in <CITY>|}
{can|may|could} {I|we|my <who>} <LEGAL>{, legally| without a permit|, or is it a crime| by law}{| in <LAND>|}
{what is the fine|how big is the fine|what is the penalty|what happens to me|what does the law say} {if I|when you} <LEGAL>{| in <LAND>|}
{can|may} {I|we|my <who>} {sue|take to court|report|complain about|hold liable} {my|the} <LAW>{| because he <WRONG>|}
what does {clause {2|3|7|12} of my|the|this} {lease|contract|will|summons|penalty notice|court letter|privacy policy|job contract} mean
is {my|the|this} {lease|contract|will|summons|penalty notice|job contract} {valid|legal}
{do I need|how do I get|who gets} a {visa|work permit|residence permit} for <LAND>
{how do I|what do I need to} {draw up|contest|cancel|write|sign} a {will|lease|divorce paper|prenup|power of attorney|loan contract|notice of termination}{| that holds in court|}"""),
    ("act", "I cannot do that|Sorry, I cannot|I have no tool", 4.5, """
{order|get|book|reserve|buy|arrange|organise|fetch} {me |us |}<ORDER>{| for <TIME>| <TIME>| please| for <n>|, quick|}
{could|can|would|will} you {order|get|book|reserve|arrange|buy|organise} {me |us |}<ORDER>{| for <TIME>| please| on my card|}
{I|we|my <who>} {need|want|would like|have to have} <ORDER> {booked|ordered|reserved|delivered}{| for <TIME>| by <CLOCK>| please|}
{call|ring|phone|dial} {<WHOM>|<WHOM> and say that <MSG>|<WHOM> for me}{| please| now|}
{text|email|e-mail|message|write to|mail|whatsapp|fax} <WHOM> {that <MSG>|to say <MSG>}
tell <WHOM> {that <MSG>|<MSG>}
let <WHOM> know {that |}<MSG>
{send|forward|post|mail} {this|the <THING>|my <THING>|the <DOC>|a thank you} to <WHOM>{| please| today|}
{set|put|start|make} {an alarm|a timer|my alarm|the alarm|a reminder|a countdown} for <CLOCK>
{wake|get} me {up |}{at|by|around} {six|seven|half past five|noon|7.30|quarter to nine}{| tomorrow| please| every day|}
{remind|nudge} {me|us} {at <CLOCK> |<TIME> |}{to water the <garden>|to call <WHOM>|about <CHORE>|to take the <FOOD> out|that <MSG>|of the <THING>}
{print|scan|photocopy|laminate|print out} {the|my|this|a} <THING>{| in colour| twice| on A3| for <WHOM>| please|}
{turn|switch} {on|off|up|down} the <DEVICE>{| please| <TIME>| at <CLOCK>|}
{turn|switch} the <DEVICE> {on|off|up|down|to eco}{| please| at <CLOCK>|}
{heat|warm up|cool|light up|lock|unlock|air} {the|my} {living room|kitchen|bathroom|car|house|flat|bedroom|office|cellar|sauna|oven}{| to {19|21|24|180} degrees| before I get home| now|}
{start|stop|pause|restart|unplug|connect|reset} the <DEVICE>{| now| in an hour| please|}
{play|put on|stream|turn on} <PLAY>{| in the kitchen| louder| please| on the speaker|}
{do|finish|take care of|see to} <CHORE>{| for me| please| while I sleep|}
{pay|cancel|renew|extend|transfer} {my rent|my gym membership|the electricity bill|my passport|my library books|my phone contract|my insurance|<NUM> <COIN> to <n>|my newspaper|the invoice}{| please| online| for me|}
{add|put|enter|note} {<LEFT>|<FOOD>|the dentist|a meeting with <WHOM>} {to|in|on|into} my {shopping list|calendar|diary|notes|to-do list}
{save|delete|rename|move|copy|zip|back up} {my photos|this file|the folder|all my mails|the <DOC>|my desktop|my contacts}{| to the <STORE>| please| on my <DEVICE2>|}
{make|bring|fetch|get|cook|serve} me {a coffee|a tea|breakfast|a sandwich|lunch|a beer|a towel|<FOOD>, I'm hungry}{| please| in bed|}"""),
    ("advice", "I know too little about that to help well. Somebody|I have no good advice", 3, """
{recipe|a recipe|good recipe|grandma's recipe|easy recipe|vegan recipe} {for|of} <FOOD>{| please| for six|}
{how|how on earth|in what way} {do I|do you|does one|can I|would you} {make|cook|prepare|season|reheat|freeze|thicken|serve} <FOOD>{| from scratch| at home| without an oven| for ten people| without eggs|}
{give|show|send|tell|teach} me {the recipe for|how to make|a recipe for|the secret of|the ingredients of} <FOOD>{| please|}
{what|which spice|which herb|how much salt|what wine|which side dish} goes {into|with} <FOOD>
{how long|at what heat|at how many degrees} {do I bake|do I cook|must I fry|does it take to make|should I boil} <FOOD>
{what|which dish} can I {cook|make|bake|do} {with|from|out of} <LEFT> and <LEFT>
{I have|there are only|all I've got is} <LEFT>, <LEFT> and <LEFT>{: what do I cook|, any dinner ideas|, what can I make|. What's for dinner}
{my|the} {dough|sauce|soup|cake|roast|gravy|jam|custard} {is too salty|is too thin|won't rise|burnt|curdled|split|sticks}{|, can I save it|, what did I do wrong|, what now}
<FOOD>{, how|, the recipe please|: recipe|, ingredients and steps|, like my gran made it, how}
{plan|make|help me plan|put together|draw up} {a trip|three days|a weekend|a week|our honeymoon|a route|an itinerary|a holiday|a day} {in|to|for|around} {<CITY>|<LAND>}{| with kids| on a budget| by train| in winter|}
{what|which sights|which museums} {should|can|must} {I|we} {see|do|visit|not miss} in {<CITY>|<LAND>}{| in two days| with a pram| when it rains|}
{where|in which part} {do I|should we|can one} {stay|eat|sleep|park|go out|shop|swim} in <CITY>{| for little money| with kids|}
{what do I|what should I|what must we} {pack|take|know|see first} {for|before} {a week in <CITY>|<LAND>|the trip to <CITY>|a flight to <CITY>}
{how do I get|what's the best way|what's the best way to travel|how do we go} {from <CITY> to <CITY>|to <CITY>|around <LAND>}{| by train| with a dog| without flying| cheaply|}
is {<CITY> worth a visit|<LAND> good for families|<CITY> nicer than <CITY>|<LAND> or <LAND> better}{| in spring| for a holiday|}"""),
    ("history", "I don't know that|Sorry, I know", 2.2, """
{who|what sort of person|what kind of man or woman} {was|is|on earth was} <PERSON>
{tell|teach|write|give} me {about|a biography of|the life of|three facts about|something about|the story of|a short portrait of} <PERSON>
{when|where} was <PERSON> {born|buried|married|crowned|raised}
{when|where|how|why} did <PERSON> {die|live|study|grow up|become famous|fall from power|retire|start out}
what {did <PERSON> {do|invent|write|discover|believe|say|eat}|made <PERSON> famous|is <PERSON> known for|happened to <PERSON>}
did <PERSON> {meet <PERSON>|know <PERSON>|have children|speak French|ever visit <CITY>|win a prize|fight in a war}
{biography|life|childhood|parents|wife or husband|death|quotes|works|CV} of <PERSON>
{how old|how tall|how rich} {was|is} <PERSON>
{a|my|I have to give a} {talk|poster|homework|school report} {on|about} <PERSON>{|, help|: facts please|}
what do you know {about|of} <PERSON>
{compare|what's the difference between|who came first,} {<PERSON> and <PERSON>|<PERSON> or <PERSON>}
{the history of|what happened long ago in|how old is|who founded} {<LAND>|<CITY>}"""),
    ("code", "", 2.6, """
{write|make|build|create|code|program|develop|implement|generate} {me |us |}{a|a simple|a full|a small|my} <PROGRAM> {in|with|using} <CODE>{| please| with tests|}
{write|make|build|create|code|develop|give me|I need|I want} <a PROGRAM>{| for my <PROJECT>| with a nice interface| that runs in the browser| for my phone|}
{can|could|would} you {write|code|build|program|make} {me |}<a PROGRAM>{| in <CODE>|}
how {do|would|should} I {start with|write|build|code|design} <a PROGRAM> {in|with} <CODE>
{<CODE>|<CODE> code|<CODE> source|<CODE> script}{:|, |for} <a PROGRAM>
{fix|debug|review|explain|speed up|refactor|comment|document|test|port} {my|this|the} {<CODE> code|<CODE> script|<PROGRAM>|<PROGRAM> in <CODE>|<CODE> function}{| please| for me|}
{port|translate|convert|rewrite} my {<PROGRAM>|code|script|library} from <CODE> to <CODE>
{my|the|our} <PROGRAM> {crashes|won't compile|throws an exception|leaks memory|is too slow|hangs|shows nothing|loses data}{|, why|, fix it please|. Where is the bug|, what's wrong}
why does my <CODE> {code fail|program crash|loop never end|build break|script do nothing}
what's wrong {with|in} my <CODE> {code|program|loop|script|function}
{teach|show} me <CODE>{| in a week| from the beginning| with examples|}
{a|write me a|I need a|one} {pull request|unit test|Makefile|Dockerfile|class|module|API|library|SQL schema|CI pipeline} for {my|a|the} <PROGRAM>"""),
    ("long", "", 1.8, """
{write|draft|compose|prepare|make|type up|produce} {me |us |}{a|a long|a good|my|a detailed|a ten-page} <TEXT> {about|on} {<TOPIC>|<TOPIC> and <TOPIC>}{| please| for school| by Monday|}
{I|we} {need|want|have to hand in} {a|a good|a {500|800|1000|2000} word|a five-page} <TEXT> {about|on} <TOPIC>
{can|could|would} you {write|draft|do|compose} {my|a|a whole} <TEXT>{| about <TOPIC>| on <TOPIC>|}
{write|draft} <a TEXT> {for my <PROJECT>|to my <LAW>|for <WHOM>}
{<TEXT>|<a TEXT>|long <TEXT>}{: |, topic |, please, on |about }<TOPIC>
{improve|proofread|shorten|rewrite|lengthen|edit|polish|grade|finish} {my|this|the|our} <TEXT>{| on <TOPIC>| about <TOPIC>| please|}
{outline|structure|plan|introduction|conclusion|chapter one} {of|for} <a TEXT> {on|about} <TOPIC>
{pros and cons|arguments for and against|a debate|ten paragraphs|a whole page|twenty pages} {of|on|about} <TOPIC>"""),
    ("draw", "", 1.6, """
{draw|paint|sketch|design|illustrate|doodle|make|generate|render} {me |us |}{a picture of |an image of |a drawing of |a painting of }<a DRAWN>{| <STYLE>| please|}
{draw|paint|sketch|doodle|illustrate} {me |us |}<a DRAWN>{| and <a DRAWN>| <STYLE>| with <a DRAWN>| please|}
{can|could|would|will} you {draw|paint|sketch|design|generate an image of} <a DRAWN>{| <STYLE>| for my <who>|}
{I|we} {want|need|would like} {a picture|a drawing|a painting|an illustration|a poster|a logo} {of|with} <a DRAWN>{| <STYLE>|}
{picture|image|drawing|painting|poster|logo|wallpaper|clip art} of <a DRAWN> <STYLE>
<a DRAWN> <STYLE>{, draw it|, paint that|, as a picture please|, make an image}
{turn|make} {my|this|a} {photo|name|house|story|face} into {a painting|a cartoon|an oil painting|a logo|a sticker|a comic}
{show|give} me {a picture|an image|a sketch|a photo} of <a DRAWN>{| <STYLE>|}
{make|create|produce|animate} {a video|a short film|a gif|an animation|a cartoon} {of|about|with} <a DRAWN>"""),
    ("online", "", 2, """
where {is|do I find|can I find} {the nearest|the next|a good|the closest|an open} <PLACE>{| in <CITY>| near me| from here|}
{nearest|closest|next|best} <PLACE>{| in <CITY>| near me| open now| please|}
{when|at what time} does the <PLACE> {in <CITY> |on the corner |}{open|close|shut}{| <TIME>|}
is {the <PLACE>|there a <PLACE>} {in <CITY> |}open {<TIME>|now|on Sundays|late|on holidays}
{opening hours|address|phone number|website|email|reviews} of the <PLACE> in <CITY>
{what's|give me|find me|tell me} the {address|phone number|opening hours|website} of {the|a} {<PLACE>|<PLACE> in <CITY>}
{which|what} <PLACE> is {open now|closest|best rated|cheapest}{| in <CITY>|}
{go|hop|get|look} {online|on the web|on the internet} and {find|look for|check|see} <FIND>
{look up|google|search the web for|search online for|browse for|research} <FIND>
what does {google|the internet|wikipedia|reddit|the web|youtube} {say|tell|think} about {<TOPIC>|<PERSON>|<ILL>|<CITY>}
{open|read|summarise|summarize|visit|check|translate|click} {the|this|that|my} <LINK>{| please| for me| I sent you|}
{the|this|my} <LINK> {is long|is in <LANG>|I sent|above}{, sum it up|, what does it say|, is it true|, read it please}
{download|fetch|stream|get} {the film|the pdf|that song|the new update|a map of <CITY>|the timetable for <CITY>} {from the web|from their site|for me|off the internet}"""),
    ("tool", "", 2.2, """
{use|call|run|start|try|take|open} {the|your|that} <TOOL> {to find|to look up|and find|and show|and get|to check|to tell me|and search for} <FIND>
{look|search|check|find} {it|that|this} {up |}{with|in|using|through|by means of} {the|your} <TOOL>
{find|look up|check|search|get} <FIND> {with|using|through|via} {the|your|a} <TOOL>
{can|could|would} you {use|call|run|start|query} {the|your} <TOOL>{| for <FIND>| for that| please|}
{please |}{use|call|run|query} {the|your} <TOOL>{| for this| now| with <TOPIC>|}
{ask|query} {the|your} <TOOL> {about|for} <FIND>
{let|have|make} the <TOOL> {find|search|look up|check} <FIND>"""),
    ("dark", "", 0.7, """
{I|i} {don't|do not|can't|no longer} want to {live|be alive|be here|wake up|go on|exist|breathe}{| any more| anymore| after all this| since <n> left|. What's the point}
{I|i} {want|wish|plan|am going|have decided} to {die|end it|end my life|kill myself|jump|be dead|stop living|disappear for ever}{| tonight| tomorrow|, nobody will notice|. Goodbye|}
{there is|there's|I see} no {reason|point|sense|hope} {to|in} {living|being alive|waking up|going on with my life} {|any more|for me|without <n>}
{everyone|my family|the world|my <who>|they} would be {better off|happier} {without me|if I were dead|if I was gone}
{I|i} {keep thinking|think every day|can't stop thinking} {of|about} {suicide|ending it|killing myself|hurting myself|dying}
{I|i} {cut|hurt|harm} myself {again|every night|and can't stop|when I am alone}"""),
    ("unknown", "I cannot know that", 1.6, """
what did {we|I} {talk|ask you|chat|speak} about {yesterday|last week|last time|on Monday|this morning|before|two days ago|in our last chat}
{do|can} you {remember|recall|still know} {what I said|our talk|what we said|what I asked you|the joke you told me|my question|the <FOOD> story} {yesterday|last week|last time|on Tuesday|last month|in the other chat}
{yesterday|last week|last time|this morning|in our last chat|on Friday} {you|we|I} {told me|told you|talked|spoke|promised|agreed|said} {about <CHATABOUT>|something about <CHATABOUT>}{, what was it|, remember|, go on from there|. What exactly}
{continue|carry on|go on with|pick up} {our|the} {talk|chat|story|discussion} {from|of} {yesterday|last night|last week|Monday}
what was {the recipe|the name|the number|the poem|the idea|the advice} {you gave me|I told you|from} {yesterday|last week|last time|the other day}
{what|how much|where} did I {spend|pay|park|buy|eat|hide|leave it|go} {yesterday|last night|on Sunday|this morning|last week}
where {did I put|did my <who> put|did I leave} {my|the} {<thing>|<GOODS>|<THING>}
{what is my <who> doing now|what is my <who> called|what does my <who> look like|how does my <who> feel about me|what is my <who> wearing}
{what|who} is {behind me|on my table|in my bag|in my wardrobe|at my door|next to me|in my fridge}"""),
]
KINDS = {None} | {g[0] for g in REFUSED}
NUMS = "5 10 12 20 25 30 40 50 75 80 99 100 110 120 150 180 200 250 300 400 500 750 800 1000 1200 1500 2000 2500 5000 7000 10000 20000 50000".split() + ["fifty", "a hundred", "two hundred", "a thousand", "five hundred", "ten thousand", "3,500", "12.50", "49.90"]
LEX["NUM"] = NUMS
LEX["COIN1"] = _l("dollar|US dollar|euro|pound|yen|yuan|won|rupee|rouble|hryvnia|zloty|forint|Czech crown|Swedish krona|Norwegian krone|Danish krone|Swiss franc|franc|Turkish lira|lev|leu|dinar|dirham|riyal|shekel|rand|naira|cedi|shilling|birr|peso|real|sol|bolivar|Canadian dollar|Aussie dollar|baht|dong|ringgit|rupiah|tenge|lari|bitcoin|ether")

NO_TOOL = [a for a in _answers("act") if "tool" in a and "hands" not in a] + ["I cannot do that: no tool was given to me. Through the API you can give me one.", "No tool was given to me, so I cannot do that. A program can give me one through the API."]
GROUPS = [(kind, share, [p for p in text.strip().split("\n")], NO_TOOL if kind == "tool" else _answers(kind, start)) for kind, start, share, text in REFUSED]
_each = [[min(alternatives(p), 60) ** 0.5 for p in g[2]] for g in GROUPS]


def errand(r, kind=None):
    """Something out of reach: (question, reasoning, answer, must); kind is one of reach.py's or "tool"."""
    weights = [g[1] if kind in (None, g[0]) else 0 for g in GROUPS]
    if kind is None and r.random() < 0.1:
        return translation(r)
    i = r.choices(range(len(GROUPS)), weights)[0]
    _, _, patterns, answers = GROUPS[i]
    q = finished(r, reword(r, spread(r, r.choices(patterns, _each[i])[0]), 0.3))
    return q, "I cannot know or do this. I say so and what would help.", r.choice(answers), []


TRANSLATE = """{translate|put|turn|render} {'<SAY>'|"<SAY>"|<SAY>} {into|to} <LANG>
how {do you say|would one say|do I say} {'<SAY>'|"<SAY>"|<SAY>} in <LANG>
what is {'<SAY>'|"<SAY>"} in <LANG>
{translate|can you translate|please translate|help me translate} {this|my|the|a} <TEXTS> {into|to} <LANG>
{'<SAY>'|<SAY>}, in <LANG>{| please|}
{I|my <who>} {need|needs} {this|a|the} <TEXTS> in <LANG>{| by tomorrow| please|}
how do {people in <LAND>|they} say '<SAY>' in <LANG>
the <LANG> {for|translation of} '<SAY>'{| please|}""".split("\n")


def translation(r):
    lang = r.choice(LEX["LANG"]) if r.random() < 0.93 else r.choice("French German Spanish Italian".split())
    q = finished(r, spread(r, r.choice(TRANSLATE)).replace("<LANG>", lang))
    w = r.choice([f"I don't know that in {lang}", f"I cannot translate that into {lang}"])
    return q, "I know only a few words of French, German, Spanish and Italian.", f"{w}: I know only a few words of French, German, Spanish and Italian. A bigger model can translate it.", [lang, "only a few words"]


# ---------------------------------------------------------------- what was not sent
UNSENT = """{the|my|this} <x> {above|I sent you|here|I attached|I uploaded|below|you have|from earlier} {has {two|three|five|12|40} {pages|parts|pieces}|is hard to read|is a bit dark|is from {<CITY>|my <who>|<n>}|looks odd|is for my <who>}{, what does it say|, sum it up|, explain it|, check it please|. What do you make of it|. Is it okay|: your opinion|, tell me more}
what {is|do you see|can you see|is going on|stands} {in|on} {the|my|this|that} <x>{| I sent| above| from <CITY>| of my <who>|}
{describe|explain|look at|have a look at|check|examine|analyse|interpret|judge|rate} {the|my|this|that|our} <x>{| please| for me| I sent you| of <CITY>| and tell me what you think|}
{does|do you think} {my|the|this} <x> {look|looks} {normal|good|right|fake|dangerous|old|finished}{| to you|}
{is there a mistake in|is something wrong with|what's wrong with|what's odd about|what's the main point of|what's the colour of} {the|my|this} <x>
{I|we|my <who>} {took|made|attached|uploaded|sent you|just added|found} {this|a|the} <x>{, what is it|. What do you think|, can you read it|. Do you like it|, is it any good}
{how many} {people|words|rows|cars|faces|lines|trees|mistakes} {are|do you count|can you see} {in|on} {the|my|this} <x>
{here is|here's|here comes|attached is|see} {my|the|a|our} <x>{, what do you say|, please comment|, is it fine|. Your verdict|: tell me all about it}
{compare|which is better,} {the two|both|these} <x>s
{can|could|would} you {read|see|open|look at|describe|check} {the|my|this} <x>{| please| for errors| I uploaded|}
{who|what} is {that|it|shown} {in|on} {the|my} <x>""".split("\n")
UNREAD = """{summarise|summarize|sum up|read|proofread|check|translate|shorten|go through|extract the dates from|turn into a list} {the|my|this|that} <x>{| please| above| I attached| in three lines| for me|}
{the|this|my} <x> {above|attached|I sent|here} {has {3|two|12|80|200} pages|is long|is in <LANG>|is from my <LAW>|is confusing}{, sum it up|, what does it say|. Give me the gist|, what matters|, is it valid}
{what|which} {does|is} {the|my|this} <x> {say about <TOPIC>|say|tell us|mean|about}
{what's|tell me|find|give me} the {total|sum|average|date|name|address|largest value|third row|last line|title|conclusion} {in|of} {the|my|this} <x>
{how many} {pages|rows|columns|words|chapters|mistakes} {has|are in|does it have,} {the|my|this} <x>
{fill in|correct|complete|sort|format} {the|my|this} <x>{| above| please| I gave you|}
{based on|according to|from|in} {the|my} <x>{, what is due|, who owes what|, which city sells most|, when do we meet|, am I insured}""".split("\n")
UNHEARD = """{listen to|hear|play back|transcribe|write down|sum up|rate} {the|my|this|that} <x>{| please| I sent| for me|}
{who sings|who speaks|what is said|what is sung} in {the|my|this} <x>
{do you like|how do you find|can you hear|did you get|can you identify} {the|my|this} <x>{| I sent| I recorded|}
{here's|I recorded|I attached|I've got} a <x>{, what do you think|, what is said in it|, type it out|. Is it in tune}""".split("\n")
SILENT = "The page can take dictation and read answers aloud, where the browser can. I myself have no sound: I read text and look at images and videos, without their audio."
NOT_SENT = ["I see no {m} here. Drop one on the page, or add it with the button under the text field, and ask again.", "There is no {m} in this chat yet. Please add one and ask again.", "I cannot see any {m}: none was sent. Add one with the button under the text field."]


def unsent(r, kind=None):
    """A question about an image, a video or a file that was not sent: (question, reasoning, answer, must)."""
    kind = kind or r.choices(["image", "video", "file", "sound"], [5, 3, 3.5, 0.7])[0]
    table = UNREAD + UNREAD + UNSENT[:1] if kind == "file" else UNHEARD if kind == "sound" else UNSENT
    name = {"image": "PICT", "video": "FILM", "file": "DOC", "sound": "SOUND"}[kind]
    while True:
        x = r.choice(LEX[name])
        p = r.choice(table)
        if "<x>s" not in p or not x.endswith("h") and " of " not in x:
            break
    q = spread(r, p)
    if kind != "image" and re.search(r"colour|faces|trees", q) and kind != "video":
        return unsent(r, kind)
    q = finished(r, reword(r, q, 0.3).replace("a <x>", an(x)).replace("<x>", x))
    if kind == "sound":
        return q, "I have no sound.", SILENT, ["no sound"]
    return q, f"No {kind} was sent.", r.choice(NOT_SENT).format(m=kind), [kind]


# ---------------------------------------------------------------- help by trouble: what a right answer contains, then patterns
_TROUBLE = """
= -m DIR
{I|we|my <who>} {have|put|copied|saved|unpacked|keep} {<MODEL>|a folder with <MODEL>|the weights of <MODEL>|a checkpoint} {on|in|to} {my|the|a} <STORE>{, how do I start it|, what do I type|. What now|, how do I get it to answer|, how does it get in here|. Load it how}
{how|how exactly} {do I|can I|would I} {start|serve|load|switch to|run} <MODEL> {from|that lies on} {my|the} <STORE>{| instead of you| on my <MACHINE>|}
{you are|you're|this thing is|this model is} {a bit dumb|too little|no help|not bright|very limited|just a toy}{, where do I change the model|, how can my <MACHINE> run something better|, how do I put <MODEL> in your place|. I want <MODEL> instead}
{replace|swap} {you|Seedling|this little model} {with|by|for} <MODEL>{, how|, which command|. How do I do that|, please tell me how}
= Qwen3-VL
{does|would|can|will} {<MODEL>|<MODEL> or <MODEL>|a <MODEL> finetune} {work|run|load|start} {here|with Parley|on this server|in this program}
is {<MODEL>|<MODEL> or <MODEL>} {supported|possible|too new|compatible|known|on the list of models}{| here|}
{which|what} {models|families|architectures|checkpoints} {can|may|do} {I|we} {use|load|run|take} {besides <MODEL>|here|apart from you|in our <PROJECT>|with this server}
= .gguf
{my|the|our} <MODEL> {is|came|comes|lies there} {as a|in one|as a single} {gguf|.gguf file|GGUF}{, will it load|, is that fine|. Can I use it|, how do I serve it}
{I|we} {downloaded|got|found|only have} {a gguf of <MODEL>|<MODEL>.gguf|<MODEL> as Q4_K_M|a quantised gguf} {on my <STORE>|from a friend|}{, does that work|, may I serve it|, what do I do with it}
{does|can} {it|Parley|the server} {read|open|take|load} {gguf|a gguf of <MODEL>|ggufs from my <STORE>}
= --models-dir
{I|we} {have|keep} {<MODEL> and <MODEL>|five models|several models|a dozen models} on {my|the} <STORE>{, can people choose|, how do I switch|. How do I offer all of them|, how do I hop from one to the other}
{can} {the users|our <PROJECT>|my <who>|everybody} {choose|pick|switch} between {<MODEL> and <MODEL>|several models|two models}{| on the page|}
{how|where} do I {change|switch} from <MODEL> to <MODEL> {without a restart|in the page|while it runs}
= parley pull
{how|where|with what command} {do I|can I|does one} {download|get|fetch|obtain|pull} <MODEL>{| for my <MACHINE>| onto my <STORE>| from the hub|}
{there is|I have|we have} no model on {my|this|our} <MACHINE>{, where do I get <MODEL>|, can it download one|. How do I fetch <MODEL>}
{can|does|will} {Parley|it|this} {download|fetch|pull} <MODEL> {by itself|from the internet|for me|over night}
= /v1/chat/completions
{how|where} {can|does|would} <ASKER> {talk to|ask|reach|call|query|send questions to} {you|the model|Parley|this server}
{I'm writing|I have|we are building|my <who> writes} {a tool|an app|a bot|a plugin|software} for {my|our|the} <PROJECT>{, which URL does it call|, how does it reach the model|. Where is the API|, which endpoint answers}
{what's|which is|where in the readme is|does the readme name} the {API|address of the API|route for chats|web API|HTTP endpoint}{| for <ASKER>| for our <PROJECT>|}
{is there|do you have} {an API|an HTTP interface|a REST API} {for <ASKER>|our <PROJECT> could use|I can call from <CODE>}
{call|use|query} {Parley|the API|the server} from <CODE>{, how|, which address|. How does that go|}
= 8080/v1
{does|will|can} <CLIENT> {work|talk|connect} {with Parley|with this server|to you|here}
{what|which} {base url|address|endpoint|api key and url} do I {put into|set in|give|enter in} <CLIENT>
{connect|point|hook up|set up} <CLIENT> {to this server|with Parley|to my own Parley|to you}{, how|. What do I enter|, which settings|}
{our|my} <PROJECT> {uses|is built on|runs} {openai's client|the OpenAI library|<CLIENT>}{, can it use this instead|, what changes|. Is this compatible}
= /v1/messages
{can|does|will} {claude code|the anthropic sdk|anthropic's client|a tool made for Claude} {use|talk to|work with} {my|this|our} {server|Parley|<MACHINE>}{| at our <PROJECT>|}
{my|our} <PROJECT> {is built on|uses} {the Anthropic SDK|Claude's API|the Messages API}{, does that run here|, can I point it here|. Is that supported}
= curl http
{give|show|send|write} me {one|a|the shortest} {line|one-liner|request|command|example} {with|for|in} {curl|the shell|wget or curl}{| to ask you| that asks the model| to test the API| from my <MACHINE>|}
{how do I ask|how would I ask|what would I type to ask} {you|the model|the API} {with curl|by curl|in one line of shell}
{curl|a curl call|a one-liner with curl|a curl example}{| for this server| for the API| please| that works on my <MACHINE>| to try it from my <MACHINE>}
= PDF and text
{can|may|could} {you|I let you|Parley} {read|open|take|look at|handle|see} {<a FILEX>|my <FILEX>|<FILEX> and <FILEX>|<a FILEX> from my <who>}
is {<FILEX>|<a FILEX>|<FILEX> or <FILEX>} {okay|allowed|fine|possible|accepted|readable}{| here|}
{what|which} {files|kinds of files|formats|endings} {can|may} {I|our <PROJECT>} {send|drop|upload|attach|show you}{, also <FILEX>|, is <FILEX> among them|}
{I have|here I've got|all my stuff is} {<a FILEX>|only <a FILEX>|<FILEX>}{, does that work|, can you read that|, will you take it|. Which formats do you take}
= Drop the file
{how|where} {do|can|shall} I {add|attach|upload|insert|put|drop|hand you|show you} {a|my|the} {photo|picture|video|clip|screenshot|scan|drawing}{| from my <DEVICE2>| from my <STORE>| of my <GOODS>|}
{I want|I'd like} {to show you|you to look at|you to see} {my <GOODS>|a photo of my <who>|my drawing of <a DRAWN>|the video from the <PLACE>|a screenshot of my <MACHINE>}{, how|. Where does it go|, how do I add it|. Which button}
{the|my} {photo|video|picture|screenshot} {is|lies} on my {<DEVICE2>|<STORE>}{, how do you get it|, how do I attach it|. Where do I put it}
= Ctrl C
how do I {stop|end|quit|shut down} {the server|Parley|the whole program|this thing} {on my <MACHINE>|in the terminal|for today|for good|cleanly}
{I|we} {started|launched} {it|Parley|the server} on {my|the} <MACHINE>{, how do I end it|, how does it stop again|. How do I switch it off|, now it won't quit}
= Esc
{you|it|the model} won't stop {writing|talking|rambling|babbling} about {<TOPIC>|<FOOD>|<CITY>|<PERSON>}{, how do I stop that|, which key|. Make it stop, how|, I want to cut it off}
{how do I stop|which key stops|which key cuts off|how do I break off|what interrupts} {you in the middle|this answer|an answer|a long poem|the text while it comes}
= between you and this server
{can|could|does|will|might} <SNOOP> {read|see|get|follow|look at|save} {what I type|my chats|our chat|my questions|my pictures|what we say here|<SECRET>}
{who|who else} {can read|sees|gets|keeps|has access to} {my chats|our chat|my photos|<SECRET>|what I write here}
{may|can|is it safe if} I {paste|tell you|upload|type in|share} <SECRET>{| here| with you| in this chat|}
{is|are} {my chats|what I say|<SECRET>|my data} {private|safe|sent to <SNOOP>|kept from <SNOOP>|used for training|logged|secret here}
= --history DIR
{where|on which disk} {are|does it keep|do I find} {my chats|the old chats|my talks} {|on my <MACHINE>|about <CHATABOUT>}{| after a restart|}
{my|all my} chats {from my <DEVICE2>|about <CHATABOUT>|from yesterday} {are not|don't show up|should be|can't be seen} on my <DEVICE2>{| too|, why|. How do I share them}
{will|do} {my chats|our talks} {still be here tomorrow|survive a restart|be on my <DEVICE2> too|stay on the server}
= Export all
{how|where} do I {save|export|copy|back up|download|take} {my chats|all chats|this chat|the talk about <CHATABOUT>} {to|onto|as} {a file|my <STORE>|another <MACHINE>|a text}
{I|we} {bought|have|moved to} a new <MACHINE>{, how do my chats get there|, can I take the chats along|. How do I move the chats}
= Ctrl Shift Backspace
{how|where} do I {delete|remove|erase|throw away|get rid of} {this chat|the chat about <CHATABOUT>|one chat|an old chat|this embarrassing talk}
{delete|remove|wipe} {the|my} chat about <CHATABOUT>{, how|, which button|. Where do I click|, my <who> must not see it}
= Ctrl Shift O
{how|where} do I {start|begin|open} {a new chat|a fresh chat|another talk|an empty chat}{| about <CHATABOUT>| for a new topic|}
{new|another} {topic|subject}{: |, }<CHATABOUT>{, how do I start a new chat|. How do I begin with an empty page}
= Ctrl K
{where is|how do I find|how do I get back to|which key finds} {the|that|my} {old |}chat about <CHATABOUT>
{search|look through|find a word in} {my|all|the old} chats{| for <CHATABOUT>}{, how|, where|. Is there a field}
= pencil
{I|my <who>} {misspelt|mistyped|wrote|forgot} {<FOOD>|the word <TOPIC>|a word|half of it} {in my question|wrong|above}{, can I edit it|, how do I change it|. Can I correct that}
{how do I|can I} {edit|change|rewrite|correct} {my last question|what I asked about <CHATABOUT>|a message I sent}
{another|a second|a different} answer {to the same question|about <CHATABOUT>|please}{, how|, which button|. Where do I click}
= Ctrl /
{which|what} {keys|shortcuts|hotkeys|key combinations} {are there|can I use|work here|should I know}{| on my <MACHINE>| without a mouse|}
= likeliest
{what|which} temperature {is good|should I set|do I choose|is best} for {<a TEXT>|<TOPIC>|recipes|code|facts|our <PROJECT>|a poem}
{it|the model|every answer} {is|gets|sounds|seems} {too random|too wild|crazy|too boring|all over the place|not creative}{, what do I turn|, which setting|. Can I change that|, how do I calm it}
= top-k keeps
what does {top-p|top k|top_p|min-p|nucleus sampling|top-k} {do|mean|change}{| for our <PROJECT>|}
= less likely
{it|the model|<MODEL>} {repeats|keeps saying|says again and again|writes over and over} {itself|the same sentence|<a DRAWN>|the same word|one line}{, how do I stop that|, is there a setting|. What helps against it|, which penalty}
= same seed
{why|how come} {do I get|is there} {a different answer|another answer|another poem about <CHATABOUT>} {each time|every time|when I ask again}
{I|our <PROJECT>|my test} {need|needs|want|wants} {the same answer|identical output|reproducible results} {every time|twice|on every run}{, how|, which setting|}
= whole chat
{it|the model} should {always |}{answer in <LANG>|talk like a pirate|be polite|work for our <PROJECT>|know that I am a teacher|answer in one line}{, where do I write that|. Where do I set it once for all|, how do I tell it for the whole chat}
what is {a|the} {system prompt|standing instruction} {|for}
= 2048 tokens
{the|my|each} {answer|story|text|list} {stops too early|ends in the middle|is cut off|breaks off|never ends properly}{| about <TOPIC>|}{, why|, how do I get more|. Is there a limit|, which setting}
{how|where} do I {make answers longer|make answers shorter|raise the limit of an answer|limit the length}{| for our <PROJECT>|}
= --ctx-size
{it|the model|<MODEL>} {forgets|forgot|loses|no longer knows} {what I said at the beginning|the start of the chat|the first pages|what we said about <CHATABOUT>}{, why|, how do I give it more memory|. How long is its memory|, can I raise that}
{how long may a chat be|how much text fits|does my <DOC> of <NUM> pages fit|how many words can it keep in mind}
{how|where} do I {raise|change|set} the context {size|length|window}{| of <MODEL>| on my <MACHINE>|}
= --port 8081
{port|the port|8080} {8080 |}{is taken|is in use|is busy|is blocked} {by <CLIENT>|on my <MACHINE>|by another program|at our <PROJECT>}{, what now|, how do I take another|. Can I change it}
{how|where} do I {change|set|choose} the port{| to {81|3000|8000|9090|443}}{| on my <MACHINE>|}
{run|start|serve} it on port {3000|8000|8888|9000|5000}{, how|. Which option|}
= --host 0.0.0.0
{my|the} <DEVICE2> {can't open|does not see|should open|should reach|can't reach} {the page|the server|this chat|Parley on my <MACHINE>}{, how|, what do I do|. How do I open it to the network|, why}
{how do I use it|can the page be used|can I chat|how do we chat} from {my|a|the} <DEVICE2>{| in the same wifi| at our <PROJECT>|}
{everyone|people|colleagues|visitors} {in|at} our <PROJECT> should {use it|see the page|reach it} {over the network|from their desks|in the wifi}{, how|. Which address do I give it|}
= --api-key-file
{how|where} do I {set a password|give out keys|put a lock on it|protect the server|keep <SNOOP> out}{| at our <PROJECT>| on my <MACHINE>|}
{<CLIENT>|my app|the page} {asks for|wants|needs} {an API key|a key|a token}{, which one|, where do I get it|. What do I enter}
= CPU only
{do I|does it|does my <MACHINE>|would our <PROJECT>} need {a GPU|a graphics card|nvidia|CUDA|special hardware}{| for <MODEL>|}
{my|the|our} <MACHINE> {has no|lacks a|has only an old|is without a} {graphics card|GPU|video card}{, does it run|, is that a problem|. Will it work}
{is|will} my <MACHINE> {good enough|strong enough|fast enough|do}{| for this| for Parley|, it has no GPU}
= --quantize
{it|<MODEL>|everything|each answer} {is slow|takes ages|crawls|is far too slow|needs minutes} on {my|the|our} <MACHINE>{, how do I speed it up|, what helps|. Can it go faster|, any tricks}
{my|the|our} <MACHINE> {is loud|gets hot|is very slow|sounds like a plane|is at its limit} {when|while} {<MODEL>|it|the model} {answers|writes|runs}{, what makes it faster|. How do I speed it up|, can it be quicker}
{how|what can I do to} {do I get|get} {more speed|faster answers|more tokens a second} {from <MODEL>|on my <MACHINE>|out of it}
= parley inspect
how much {memory|RAM} {does <MODEL> need|do I need for <MODEL>|is good for <MODEL>}
{will|does|would} <MODEL> fit {into|in} {8|16|32|64} {GB|gigs|gigabytes}{| of RAM| of my <MACHINE>|}
{my|the} <MACHINE> {runs out of memory|is out of memory|has only {4|8|16} GB|swaps} {with|for|when I load} <MODEL>{, what now|, which one fits|. What can I do}
= 8 or 4 bits
what does {quantizing|q4|q8|4 bit|quantisation} {mean|do|cost}{| to <MODEL>|}
is {<MODEL> in 4 bit|q4|quantized <MODEL>} {much worse|less clever|still good|less exact}
= ./scripts/run
{how|how exactly} do I {install|build|set up|compile|get} {Parley|it|this server} on {my|our|a} <MACHINE>
{I|we|my <who>} {cloned|downloaded|unpacked} {the repo|the sources|the code}{| to my <STORE>| on my <MACHINE>}{, what next|, how do I start it|. Which command first}
= systemctl enable
{it|Parley|the server} should {start with|run whenever I boot|come up by itself on|always run on} {my|our|the} <MACHINE>{, how|. How do I set that up|}
{after|when} {a reboot|the power fails|a restart} {of my <MACHINE> |}{it is gone|Parley is off|I must start it by hand}{, how do I change that|. Can it start alone}
= proxy_buffering
{how do I|can I} {put|run} {it|Parley} behind {nginx|caddy|traefik|apache|a reverse proxy}{| with https| at our <PROJECT>| on our <MACHINE>|}
= parley health
{does it run|can Parley run|how do I run it} in {docker|podman|kubernetes|a container|k8s}{| on my <MACHINE>| at our <PROJECT>|}
= MIT
{can|may} {my|our|a} <PROJECT> {use|sell|ship|change|host|build on} {it|Parley|this}{| for free| without paying| commercially|}
{which|what} licence {is it|do we need|applies|does it have} {for our <PROJECT>|if I sell it|}
{does it cost anything|what does it cost|is there a fee} {for my <PROJECT>|for a <PROJECT>|if our <PROJECT> uses it}
= chat server
{what|what exactly} is {Parley|this program|this server|this page} {for|about|good for}{| in our <PROJECT>| on my <MACHINE>|}
{my <who>|somebody|our <PROJECT>} {put|installed|runs} {Parley|this} on my <MACHINE>{, what is it|. What does it do|, what can I do with it}
= --mcp-config
{can it|how do I let the model|can the page} use {MCP|my MCP server|tools like a calculator|a tool server}{| from our <PROJECT>|}
= response_format
{<ASKER>|our <PROJECT>} {needs|wants|expects|can only read} {valid json|json|a fixed form|structured output}{, how do I get it|. How do I force that|, which field}
= stream
{<ASKER>|our <PROJECT>} {should show|wants|needs} {the answer piece by piece|the words as they come|streamed text}{, how|. How do I stream|}
= parley run
{can|how do} I {use it|ask it|ask one question|chat} {without a browser|in the terminal of my <MACHINE>|from the shell|over ssh}
= no sound
{can|do} you {hear|understand|listen to} {my <SOUND>|<a SOUND>|me when I speak|<a SOUND> from my <who>}
= do not learn
{do|will|can} you {learn|remember for ever|get better} {from <CHATABOUT>|from this chat|from my mistakes|what I tell you about my <who>}
{can|how can} {I|we|our <PROJECT>} {train|finetune|teach|fine-tune} {you|the model|<MODEL>}{| with our documents| on my <MACHINE>|}
= docs/options.md
{where|in which file} {are|do I find|can I change} {the settings|the options|all flags|the defaults}{| of the server| on my <MACHINE>|}
= Theme
{how|where} do I {get dark mode|make the text bigger|change the colours|make the page darker|enlarge the letters}{| on my <DEVICE2>| for my <who>|}
= docs/limits.md
{my|the} {photo|video|<FILEX>|clip} {is too big|is {2|3|5} gigabytes|has an hour|was refused}{, what is the limit|. How big may it be|, how much is allowed}
= --parallel
{can our whole <PROJECT>|how many people in our <PROJECT> can|can my <who> and I|can ten colleagues} {use it|chat|ask} {at once|at the same time|together}
= README.md
{where is the manual|is there a manual|where is documentation|is there a guide|is there something to read}{| for our <PROJECT>| about Parley| for beginners|}
= Debian 12
{does|will} {it|Parley} {run|work|build} on {windows|macOS|ubuntu|my <MACHINE>|a <MACHINE> with {windows|fedora|arch|ubuntu|macOS}|android|freebsd}
= http://127.0.0.1:8080
{where is the page|which address opens the page|what do I type to open the chat|what do I type in the browser} {on my <MACHINE>|of my <MACHINE>|for the chat}
= parley doctor
{it|Parley|the server|everything} {crashes|broke|won't start|does not start|fails|shows an error} {on my <MACHINE>|since the update|with <MODEL>|in our <PROJECT>}{, what can I do|, help|. How do I find out why}
= parley --version
{how|where} do I {update|upgrade|get the newest version|see the version}{| of Parley| on my <MACHINE>|}
{which|what} version {runs on my <MACHINE>|do we have|is this|is installed}{, is it the newest|. How do I update|}
= offline
{does it|will it|can it} {work|run|answer} {without internet|offline|with no wifi|on a plane}{| on my <MACHINE>| in our <PROJECT>|}
= side by side
{compare|put} <MODEL> {and|with|against} <MODEL>{, can the page do that|. Can both answer at once|, how}
= seven languages
is the page {available |there |}in <LANG>{| for my <who>| at our <PROJECT>|}
= --threads N
{it|the model|<MODEL>} {takes|eats|uses} all {cores|my CPU|the processor} of my <MACHINE>{, can I limit that|. How many threads|, how do I leave some free}
= Ollama
{can|do} {tools for ollama|my ollama client|ollama apps|programs that only know ollama} {use this|work here|talk to Parley}
= Continue
{the|my} answer about {<TOPIC>|<CHATABOUT>} was cut{, can it go on|. How do I let it continue|, how do I get the rest}
= emporary chat
{a|can I have a} chat {that nobody keeps|that is not saved|without a trace|that leaves nothing}{| about <CHATABOUT>| on my <MACHINE>|}
= parley remove
{which models|what models} {are on my <MACHINE>|lie on this machine|do I have already}{, and how do I delete one|. How do I remove <MODEL>|}
"""


def _troubles(text):
    out = []
    for block in text.strip().split("\n= "):
        must, *lines = block.removeprefix("= ").split("\n")
        out.append((must.strip(), [x for x in lines if x]))
    return out


TROUBLE = _troubles(_TROUBLE)
_much = [min(sum(alternatives(p) for p in ps), 400) ** 0.5 for _, ps in TROUBLE]


def trouble(r):
    """A question about Parley with what its right answer contains (helpdesk.TOPICS)."""
    must, patterns = r.choices(TROUBLE, _much)[0]
    p = r.choices(patterns, [min(alternatives(x), 100) ** 0.5 for x in patterns])[0]
    return finished(r, reword(r, spread(r, p), 0.3)), must
