exports.sum = (...numbers) => numbers.reduce((whole, number) => whole + number, 0);
