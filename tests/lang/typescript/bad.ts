const name = "x";
const n: number = name;
console.log(n);
