"""Word lists and small tables that the generators of data.py draw from."""

NAMES = """Anna Ben Clara David Emma Felix Grace Henry Ida Jack Kate Leo Mia Noah Olivia Paul Quinn Rosa Sam Tina Uma Victor Wendy
Xavier Yara Zoe Alice Bob Carol Dan Eva Frank Gina Hugo Iris John Karl Lena Max Nina Otto Peter Ruth Simon Tom Ute Vera Will Yusuf Zara
Maria Luca Sofia Ali Priya Kenji Amir Chloe Diego Elena""".split()

ANIMALS = """cat dog horse cow pig sheep goat duck hen fox wolf bear lion tiger mouse rabbit frog snake owl eagle whale shark bee ant
spider monkey zebra camel deer otter penguin turtle""".split()
FRUITS = "apple banana cherry grape lemon mango melon orange peach pear plum kiwi".split()
VEGETABLES = "carrot potato tomato onion pepper cabbage lettuce bean pea corn".split()
PLANETS = "Mercury Venus Earth Mars Jupiter Saturn Uranus Neptune".split()
DAYS = "Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split()
MONTHS = "January February March April May June July August September October November December".split()
SEASONS = "spring summer autumn winter".split()
NUMBERS = (
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen sixteen seventeen eighteen nineteen twenty".split()
)
TENS = "_ ten twenty thirty forty fifty sixty seventy eighty ninety".split()

NOUNS = """house tree river garden window table chair door lamp book pencil paper letter bottle cup plate spoon knife bread cheese
butter sugar water milk coffee tea soup cake bridge road street city village school church market shop train plane boat ship car bus
truck bicycle wheel engine clock watch phone radio camera mirror picture flower leaf root seed grass stone rock sand hill mountain valley
forest field lake island beach ocean cloud rain snow wind storm thunder sun moon star sky fire smoke light shadow color sound music song
dance game ball toy doll kite coat hat shoe shirt glove scarf button pocket ring crown sword shield castle tower wall roof floor
kitchen bedroom cellar ladder hammer nail saw rope bell drum flute guitar piano violin hand foot head nose mouth ear eye hair finger
heart story poem word number question answer idea dream friend child mother father sister brother doctor teacher farmer baker king queen
pirate robot rocket planet winter summer morning evening basket blanket candle carpet strawberry elephant butterfly banana computer
keyboard pillow pumpkin rainbow sandwich umbrella yellow zebra kangaroo mississippi""".split()

ADJECTIVES = """small big old young happy sad quiet loud bright dark warm cold soft hard quick slow brave clever kind funny gentle golden
silver tiny tall round empty green blue red white""".split()
VERBS_PAST = "found saw followed carried painted lost opened built watched loved cleaned shared".split()

OPPOSITES = dict(
    l.split(":")
    for l in """hot:cold big:small up:down left:right fast:slow light:dark happy:sad old:new open:closed high:low
near:far full:empty early:late hard:soft loud:quiet strong:weak rich:poor wet:dry day:night black:white in:out on:off yes:no long:short
thick:thin clean:dirty good:bad true:false begin:end win:lose love:hate push:pull buy:sell give:take laugh:cry remember:forget
always:never above:below before:after inside:outside heavy:light wide:narrow deep:shallow sweet:sour summer:winter north:south east:west
first:last front:back top:bottom hello:goodbye question:answer young:old""".split()
)

PLURALS = dict(
    l.split(":")
    for l in """cat:cats dog:dogs child:children mouse:mice foot:feet tooth:teeth goose:geese man:men woman:women
person:people leaf:leaves knife:knives wolf:wolves box:boxes bus:buses city:cities baby:babies berry:berries fish:fish sheep:sheep ox:oxen
book:books house:houses tree:trees car:cars dish:dishes church:churches party:parties lady:ladies toy:toys day:days key:keys hero:heroes
potato:potatoes tomato:tomatoes half:halves shelf:shelves wife:wives life:lives story:stories penny:pennies fox:foxes glass:glasses
class:classes star:stars circle:circles square:squares""".split()
)

SOUNDS = dict(
    l.split(":")
    for l in "cat:meow dog:woof cow:moo pig:oink sheep:baa duck:quack lion:roar bee:buzz snake:hiss owl:hoot frog:ribbit horse:neigh mouse:squeak hen:cluck wolf:howl".split()
)
BABIES = dict(
    l.split(":")
    for l in "cat:kitten dog:puppy cow:calf horse:foal sheep:lamb pig:piglet duck:duckling hen:chick goat:kid lion:cub bear:cub fox:cub deer:fawn frog:tadpole goose:gosling".split()
)
LEGS = dict(cat=4, dog=4, horse=4, cow=4, spider=8, ant=6, bee=6, duck=2, hen=2, snake=0, bird=2, octopus=8, frog=4, fish=0, person=2)
THING_COLORS = {
    "the sky": "blue",
    "grass": "green",
    "snow": "white",
    "coal": "black",
    "a banana": "yellow",
    "a ripe tomato": "red",
    "an orange": "orange",
    "chocolate": "brown",
    "a lemon": "yellow",
    "blood": "red",
    "an elephant": "gray",
    "a flamingo": "pink",
    "milk": "white",
    "a leaf in spring": "green",
    "the night sky": "black",
    "a carrot": "orange",
    "a strawberry": "red",
    "the sea": "blue",
    "a plum": "purple",
    "a polar bear": "white",
}
SIDES = dict(triangle=3, square=4, rectangle=4, pentagon=5, hexagon=6, octagon=8, circle=0)

CAPITALS = dict(
    l.split(":")
    for l in """France:Paris;Germany:Berlin;Italy:Rome;Spain:Madrid;Portugal:Lisbon;England:London;Scotland:Edinburgh;
Ireland:Dublin;Norway:Oslo;Sweden:Stockholm;Finland:Helsinki;Denmark:Copenhagen;Iceland:Reykjavik;Poland:Warsaw;Austria:Vienna;
Switzerland:Bern;Belgium:Brussels;the Netherlands:Amsterdam;Greece:Athens;Turkey:Ankara;Russia:Moscow;Ukraine:Kyiv;Hungary:Budapest;
Romania:Bucharest;Bulgaria:Sofia;Serbia:Belgrade;Croatia:Zagreb;Slovenia:Ljubljana;Slovakia:Bratislava;the Czech Republic:Prague;
Estonia:Tallinn;Latvia:Riga;Lithuania:Vilnius;Luxembourg:Luxembourg;Malta:Valletta;Cyprus:Nicosia;Egypt:Cairo;Morocco:Rabat;
Algeria:Algiers;Tunisia:Tunis;Libya:Tripoli;Kenya:Nairobi;Ethiopia:Addis Ababa;Ghana:Accra;Nigeria:Abuja;Senegal:Dakar;Uganda:Kampala;
Rwanda:Kigali;Zambia:Lusaka;Zimbabwe:Harare;Angola:Luanda;Namibia:Windhoek;Madagascar:Antananarivo;Japan:Tokyo;China:Beijing;India:New Delhi;
South Korea:Seoul;Thailand:Bangkok;Vietnam:Hanoi;Indonesia:Jakarta;Malaysia:Kuala Lumpur;the Philippines:Manila;Nepal:Kathmandu;
Pakistan:Islamabad;Bangladesh:Dhaka;Sri Lanka:Colombo;Iran:Tehran;Iraq:Baghdad;Jordan:Amman;Lebanon:Beirut;Saudi Arabia:Riyadh;
Australia:Canberra;New Zealand:Wellington;Canada:Ottawa;the United States:Washington;Mexico:Mexico City;Cuba:Havana;Brazil:Brasilia;
Argentina:Buenos Aires;Chile:Santiago;Peru:Lima;Colombia:Bogota;Ecuador:Quito;Uruguay:Montevideo;Venezuela:Caracas;Bolivia:Sucre;
Paraguay:Asuncion;Jamaica:Kingston""".replace(
        "\n", ""
    ).split(
        ";"
    )
)
CITIES = [c for c in CAPITALS.values()]

FACTS = [
    l.split("|")
    for l in """How many days are in a week?|There are 7 days in a week.|7
How many months are in a year?|There are 12 months in a year.|12
How many hours are in a day?|There are 24 hours in a day.|24
How many days does a year have?|A year has 365 days, and a leap year has 366.|365
How many planets are in the solar system?|There are 8 planets in the solar system.|8
What is the largest planet?|The largest planet is Jupiter.|Jupiter
What is the smallest planet?|The smallest planet is Mercury.|Mercury
Which planet do we live on?|We live on Earth.|Earth
Which planet is called the red planet?|Mars is called the red planet.|Mars
What is the chemical formula of water?|Water is H2O.|H2O
At what temperature does water freeze?|Water freezes at 0 degrees Celsius.|0 degrees
At what temperature does water boil?|Water boils at 100 degrees Celsius.|100 degrees
How many legs does a spider have?|A spider has 8 legs.|8
How many continents are there?|There are 7 continents.|7
What is the largest ocean?|The largest ocean is the Pacific Ocean.|Pacific
What is the highest mountain?|The highest mountain is Mount Everest.|Everest
What is the fastest land animal?|The fastest land animal is the cheetah.|cheetah
What is the largest animal?|The largest animal is the blue whale.|blue whale
What do bees make?|Bees make honey.|honey
What do cows give us?|Cows give us milk.|milk
Where does the sun rise?|The sun rises in the east.|east
Where does the sun set?|The sun sets in the west.|west
What gas do plants need?|Plants need carbon dioxide.|carbon dioxide
What do we breathe?|We breathe air, and we need the oxygen in it.|oxygen
What color do you get from blue and yellow?|Blue and yellow make green.|green
What color do you get from red and yellow?|Red and yellow make orange.|orange
What color do you get from red and blue?|Red and blue make purple.|purple
What color do you get from red and white?|Red and white make pink.|pink
What are the primary colors?|The primary colors are red, yellow and blue.|red, yellow and blue
How many letters are in the alphabet?|The English alphabet has 26 letters.|26
What is the first letter of the alphabet?|The first letter is A.|A
What is the last letter of the alphabet?|The last letter is Z.|Z
What are the vowels?|The vowels are a, e, i, o and u.|a, e, i, o
How many wheels does a bicycle have?|A bicycle has 2 wheels.|2
How many wheels does a car have?|A car has 4 wheels.|4
How many strings does a violin have?|A violin has 4 strings.|4
How many fingers are on one hand?|One hand has 5 fingers.|5
What is ice made of?|Ice is frozen water.|water
What do caterpillars turn into?|Caterpillars turn into butterflies.|butterflies
What is the opposite direction of north?|The opposite of north is south.|south
What is a baby cat called?|A baby cat is called a kitten.|kitten
Who wrote Romeo and Juliet?|William Shakespeare wrote Romeo and Juliet.|Shakespeare
Who painted the Mona Lisa?|Leonardo da Vinci painted the Mona Lisa.|Leonardo
What is the value of pi?|Pi is about 3.14.|3.14
What is half of one hundred?|Half of 100 is 50.|50
What is a dozen?|A dozen is 12.|12
What language is spoken in Brazil?|People in Brazil speak Portuguese.|Portuguese
What is the capital of the moon?|The moon has no capital.|no capital""".split(
        "\n"
    )
]

UNKNOWN = """Who won the football game last night?|What is the stock price of a big company today?|Who is the president right now?|What is the news today?
Can you recommend a good lawyer?|How do I repair my car engine?|What is the meaning of life?|Explain quantum field theory.|Who invented the telephone?
How do I cure a headache?|What happened in 1848?|Write a legal contract for me.|What time is it now?|How tall is the Eiffel Tower?|What is the population of Tokyo?
Tell me about the French Revolution.|What is the best phone to buy?|How does a nuclear reactor work?|Translate this novel into Latin.|Who is the richest person?
What is the plot of the newest video?|How much does a house cost?|What is the derivative of a tangent?|Explain general relativity to me.|Which team is the best?
What should I invest in?|How do vaccines work?|Who was the second emperor of Rome?|What is the boiling point of mercury?|Prove that there are infinitely many primes.
What is the airspeed of a swallow?|Can you book me a flight?|What did I eat yesterday?|Where did I put my keys?|How do I bake a wedding cake?|Who directed that video?""".replace(
    "\n", "|"
).split(
    "|"
)

UNITS = [
    ("meters", "centimeters", 100),
    ("kilometers", "meters", 1000),
    ("hours", "minutes", 60),
    ("minutes", "seconds", 60),
    ("days", "hours", 24),
    ("weeks", "days", 7),
    ("kilograms", "grams", 1000),
    ("liters", "milliliters", 1000),
    ("centimeters", "millimeters", 10),
    ("years", "months", 12),
    ("dollars", "cents", 100),
    ("dozens", "pieces", 12),
]

CODE = {  # (language, fence tag, hello world with {S}, count with {N}, add function)
    "Python": ("python", 'print("{S}")', "for i in range(1, {N} + 1):\n    print(i)", "def {F}(a, b):\n    return a {O} b"),
    "C": (
        "c",
        '#include <stdio.h>\n\nint main(void) {{\n    puts("{S}");\n    return 0;\n}}',
        '#include <stdio.h>\n\nint main(void) {{\n    for (int i = 1; i <= {N}; i++)\n        printf("%d\\n", i);\n    return 0;\n}}',
        "int {F}(int a, int b) {{\n    return a {O} b;\n}}",
    ),
    "JavaScript": (
        "javascript",
        'console.log("{S}");',
        "for (let i = 1; i <= {N}; i++) {{\n  console.log(i);\n}}",
        "function {F}(a, b) {{\n  return a {O} b;\n}}",
    ),
    "Bash": ("bash", 'echo "{S}"', "for i in $(seq 1 {N}); do\n  echo $i\ndone", "{F}() {{\n  echo $(($1 {O} $2))\n}}"),
    "Rust": (
        "rust",
        'fn main() {{\n    println!("{S}");\n}}',
        "fn main() {{\n    for i in 1..={N} {{\n        println!(\"{{}}\", i);\n    }}\n}}",
        "fn {F}(a: i32, b: i32) -> i32 {{\n    a {O} b\n}}",
    ),
    "Go": (
        "go",
        'package main\n\nimport "fmt"\n\nfunc main() {{\n    fmt.Println("{S}")\n}}',
        'package main\n\nimport "fmt"\n\nfunc main() {{\n    for i := 1; i <= {N}; i++ {{\n        fmt.Println(i)\n    }}\n}}',
        "func {F}(a, b int) int {{\n    return a {O} b\n}}",
    ),
}


def an(word):
    """The word with its article."""
    return ("an " if word[0].lower() in "aeiou" else "a ") + word


def cap(text):
    """The text with a capital first letter."""
    return text[:1].upper() + text[1:]
